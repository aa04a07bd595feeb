//! Work after the seal: stores the changes that no snapshot has yet, whenever bucket and etcd can be reached
//! again (R17-46).
//!
//! First the note with etcd's revision, then the pending changes as a delta, then the final snapshot. A delta
//! takes well under a second where a full snapshot of a large etcd takes minutes. A destination that reads
//! note and delta has all changes. The note precedes the delta: a destination that knows the revision waits
//! for the delta, and knows how much is missing if the delta never comes.

use super::changes::Changes;
use super::deltas::CATCH_UP;
use super::finale::FinalKind;
use super::proof::Proof;
use super::requests::{Request, Urgent};
use super::worker::Worker;
use super::{PAUSES, Snapshotter};
use crate::chain;
use crate::error::{Class, Error, Result};
use crate::etcd::Etcd;
use crate::seal_note::SealNote;
use crate::store::Store;
use std::convert::Infallible;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// Pause between two writes of the note while data are being stored. Several fit into the time after which a
/// copy takes the source for dead (`copy::storing`).
pub const BEAT: Duration = Duration::from_secs(5);

impl Snapshotter {
    /// Tries until the final snapshot is verified, then answers requests; ends when stopped, but not in the
    /// middle of a try.
    pub async fn run_sealed(mut self, stop: CancellationToken) {
        let (mut due, mut pause, mut told) = (Instant::now(), PAUSES.0, None);
        loop {
            let done = self.worker.state.proof().is_some();
            let answer = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                urgent = self.urgent.recv() => match urgent {
                    None => return,
                    Some(Urgent::Resume(answer)) => {
                        let _ = answer.send(Err(sealed()));
                        continue;
                    }
                    // A caller that stopped waiting needs no try.
                    Some(Urgent::Final(answer)) if answer.is_closed() => continue,
                    Some(Urgent::Final(answer)) => Some(answer),
                },
                Some(request) = self.worker.requests.recv() => {
                    refuse(request);
                    continue;
                }
                () = sleep_until(due), if !done => None,
            };
            let taken = self.worker.finish_sealed().await;
            match &taken {
                Ok(_) => {}
                Err(e) => {
                    // Logged once for each class: the error may persist for days.
                    if told.replace(e.class) == Some(e.class) {
                        tracing::debug!(class = e.class.as_str(), error = %e, "still no final snapshot");
                    } else {
                        tracing::warn!(class = e.class.as_str(), error = %e, "the final snapshot is not taken yet; it is tried again");
                    }
                    self.worker.state.failed(e);
                    due = Instant::now() + pause;
                    pause = (pause * 2).min(PAUSES.1);
                }
            }
            if let Some(answer) = answer {
                let _ = answer.send(taken);
            }
        }
    }
}

fn refuse(request: Request) {
    match request {
        Request::Full(answer) => drop(answer.send(Err(sealed()))),
        Request::Delta(answer) => drop(answer.send(Err(sealed()))),
        Request::MakeRoom(answer) => drop(answer.send(Err(sealed()))),
    }
}

/// The revision at which the epoch of a proof was sealed: by the note of that epoch, else by the proof. The
/// proof of a sealed epoch holds every acknowledged write, so that the epoch was sealed at the end of the
/// proof or before. Without a sealed revision, a lease that expired before the proof would look like a write,
/// and the source seed would refuse the proof for ever.
fn sealed_revision(note: Option<SealNote>, proof: &Proof) -> i64 {
    let noted = note.filter(|note| note.epoch == proof.epoch);
    noted.map_or(proof.last_revision, |note| note.revision)
}

fn sealed() -> Error {
    let what = "this ownership epoch is sealed: there is its final snapshot, and no other follows";
    Error::new(Class::Finished, what)
}

impl Worker {
    /// Returns the final snapshot that was taken since the seal, also by an earlier process. etcd may have
    /// changed since then, because its leases run out. Takes the final snapshot if there is none.
    async fn finish_sealed(&mut self) -> Result<Proof> {
        if let Some(proof) = self.state.proof() {
            return Ok(proof);
        }
        let store = &self.settings.store;
        let recorded = match Proof::recorded(store).await {
            // An unreadable record is overwritten.
            Err(e) if e.class == Class::SnapshotUnparsable => None,
            recorded => recorded?,
        };
        let listing = store.list().await?;
        let proof = recorded.filter(|proof| proof.sealed && proof.epoch == store.epoch());
        if let Some(proof) = proof.filter(|proof| listing.iter().any(|s| s.to_string() == proof.snapshot)) {
            tracing::info!(
                snapshot = proof.snapshot,
                "the final snapshot was taken by an earlier process"
            );
            self.remember(&listing);
            let note = SealNote::read(store).await?;
            self.state.note_sealed_revision(sealed_revision(note, &proof));
            self.state.finished(proof.clone());
            return Ok(proof);
        }
        let store = store.clone();
        let note = self.note_seal().await?;
        if note.epoch == store.epoch() {
            self.state.note_sealed_revision(note.revision);
        }
        let stored = async {
            // Neither is needed for the final snapshot: history may be compacted, or the chain may have a
            // hole.
            match self.store_pending().await {
                Ok(()) => {}
                Err(e) => {
                    tracing::warn!(class = e.class.as_str(), error = %e, "the pending changes were not stored as a delta");
                }
            }
            self.finish(FinalKind::Sealed).await
        };
        tokio::select! {
            proof = stored => proof,
            never = beat(&store, note) => match never {},
        }
    }

    /// Notes the revision at which the epoch was sealed. A note of an earlier process stays: later revisions
    /// come from expired leases, and no client has read such a revision.
    async fn note_seal(&self) -> Result<SealNote> {
        let store = &self.settings.store;
        let found = SealNote::read(store).await?;
        if let Some(found) = found.filter(|found| found.epoch >= store.epoch()) {
            return Ok(found);
        }
        let etcd = self.settings.etcd.connect().await?;
        let note = SealNote {
            epoch: store.epoch(),
            revision: etcd.revision().await?,
            beat: 0,
        };
        note.write(store).await?;
        tracing::info!(
            epoch = note.epoch,
            revision = note.revision,
            "noted the sealed revision in the bucket"
        );
        Ok(note)
    }

    /// Stores the changes that etcd has and no snapshot holds, if the changes continue the newest chain.
    async fn store_pending(&self) -> Result<()> {
        let store = &self.settings.store;
        let etcd = self.settings.etcd.connect().await?;
        let revision = etcd.revision().await?;
        let origin = store
            .recorded(store.epoch())
            .await?
            .map(|recorded| recorded.origin);
        let newest = chain::newest(&store.list().await?)?;
        let continued = newest.filter(|chain| !chain.breaks_off_before(store.epoch(), origin));
        let Some(reached) = continued.map(|chain| chain.last_revision()) else {
            return Ok(());
        };
        if reached >= revision {
            return Ok(());
        }
        self.store_between(&etcd, reached, revision).await
    }

    async fn store_between(&self, etcd: &Etcd, reached: i64, revision: i64) -> Result<()> {
        let begun = Instant::now();
        let mut changes = Changes::after(etcd, reached, None, self.settings.compression).await?;
        let stored = timeout(CATCH_UP, self.store_up_to(&mut changes, revision)).await;
        stored.map_err(|_| {
            let what = format!(
                "etcd did not send revision {revision}, or the store did not take it, within {CATCH_UP:?}"
            );
            Error::new(Class::Etcd, what)
        })??;
        tracing::info!(
            from = reached + 1,
            to = revision,
            seconds = begun.elapsed().as_secs_f64(),
            "stored the pending changes of the sealed epoch"
        );
        Ok(())
    }
}

/// Rewrites the note until the future is dropped, so that a destination sees that the source is alive.
async fn beat(store: &Store, mut note: SealNote) -> Infallible {
    loop {
        sleep(BEAT).await;
        // A later owner of the store may have noted the end of a later epoch.
        if note.epoch == store.epoch() {
            note.beat += 1;
            if let Err(error) = note.write(store).await {
                tracing::debug!(%error, "the note of the seal was not written");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_without_the_note_of_its_seal_bounds_the_sealed_revision() {
        let proof = Proof {
            snapshot: "Full-00000000-00000009-2.gz.final".to_owned(),
            epoch: 3,
            last_revision: 9,
            // Two leases expired while the snapshot was taken.
            etcd_revision: 11,
            sha256: String::new(),
            sealed: true,
        };
        let note = |epoch| SealNote {
            epoch,
            revision: 7,
            beat: 1,
        };
        assert_eq!(sealed_revision(Some(note(3)), &proof), 7);
        for gone in [None, Some(note(2)), Some(note(4))] {
            assert_eq!(sealed_revision(gone, &proof), 9, "{gone:?}");
        }
    }
}
