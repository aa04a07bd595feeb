//! The end of a residency: the verified final snapshot, and its cancellation.
//!
//! A final snapshot counts if the content that was read back equals the sent content, and if no client can
//! have an acknowledged write that the snapshot lacks (I2, [`holds_all_acknowledged`]). A snapshot that fails
//! this check is deleted, and the snapshotter continues.

use super::plan::not_behind;
use super::proof::{Proof, fingerprint};
use super::requests::Urgent;
use super::worker::Worker;
use crate::chain;
use crate::error::{Class, Error, Result};
use crate::etcd::Etcd;
use crate::snapshot_name::Snapshot;

/// The circumstances of a final snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FinalKind {
    /// A request while the epoch is not sealed: clients may still write.
    Requested,
    /// The epoch is sealed: the gate in front of etcd never opens again.
    Sealed,
}

/// Whether a snapshot up to `last` holds every write that etcd has acknowledged to a client. `sealed`: the
/// revision at which the epoch was sealed, if the bucket has the note of this epoch.
///
/// Behind the shut gate only etcd creates revisions, because leases expire, and no client reads such a
/// revision. So the snapshot may end before etcd does, but not before the sealed revision. In an etcd that is
/// restored from the snapshot these leases exist again, with their full TTL.
fn holds_all_acknowledged(last: i64, etcd_revision: i64, sealed: Option<i64>) -> bool {
    last == etcd_revision || sealed.is_some_and(|sealed| (sealed..=etcd_revision).contains(&last))
}

impl Worker {
    /// Serves a request that precedes all other requests.
    pub(super) async fn serve_urgent(&mut self, request: Urgent) {
        match request {
            Urgent::Final(answer) => {
                let taken = self.finish(FinalKind::Requested).await;
                if let Err(e) = &taken {
                    tracing::warn!(class = e.class.as_str(), error = %e, "the final snapshot was not taken");
                }
                let _ = answer.send(taken);
            }
            Urgent::Resume(answer) => {
                let _ = answer.send(self.resume().await);
            }
        }
    }

    /// Takes the final snapshot, or returns the existing final snapshot that holds all acknowledged writes
    /// (R17-40).
    pub(super) async fn finish(&mut self, kind: FinalKind) -> Result<Proof> {
        let sealed_revision = match kind {
            FinalKind::Requested => None,
            FinalKind::Sealed => self.state.sealed_revision(),
        };
        let store = &self.settings.store;
        let etcd = self.settings.etcd.connect().await?;
        let revision = etcd.revision().await?;
        let listing = store.list().await?;
        self.remember(&listing);
        not_behind(&listing, revision)?;
        if let Some(proof) = self.state.proof() {
            let is_valid = proof.is_valid_for(&listing, revision, self.settings.store.epoch());
            if self.read_back_by_this_process && is_valid {
                return Ok(proof);
            }
            // Until a newer final snapshot is verified this etcd is not finished. Backups continue if the new
            // snapshot fails.
            if proof.last_revision != revision {
                self.leave("etcd was written to after the final snapshot").await?;
            }
        }
        // The chain with which this epoch begins may end with the final snapshot of an earlier epoch.
        let found = chain::final_snapshot(&listing)
            .filter(|found| found.epoch == self.settings.store.epoch())
            .filter(|found| holds_all_acknowledged(found.last_revision, revision, sealed_revision));
        let (snapshot, sha256) = match self.intact(found).await? {
            Some(intact) => intact,
            None => self.take_final(&etcd).await?,
        };
        let proof = Proof {
            snapshot: snapshot.to_string(),
            epoch: self.settings.store.epoch(),
            last_revision: snapshot.last_revision,
            etcd_revision: self.check_end(&etcd, &snapshot, sealed_revision).await?,
            sha256,
            sealed: kind == FinalKind::Sealed,
        };
        proof.record(&self.settings.store).await?;
        tracing::info!(%snapshot, epoch = proof.epoch, "the final snapshot is proven");
        self.read_back_by_this_process = true;
        self.begin_with = None;
        self.state.finished(proof.clone());
        Ok(proof)
    }

    /// An earlier final snapshot with the hash of the stored bytes, if its content matches its own hash. A
    /// broken final snapshot is no obstacle: a new snapshot is taken beside it.
    async fn intact(&self, found: Option<&Snapshot>) -> Result<Option<(Snapshot, String)>> {
        let Some(found) = found else { return Ok(None) };
        let store = &self.settings.store;
        let checked = store.read_verified(found, &mut tokio::io::sink()).await;
        match checked {
            Ok(_) => {
                tracing::info!(snapshot = %found, "the final snapshot exists already");
                let sha256 = fingerprint(store, found).await?;
                Ok(Some((found.clone(), sha256)))
            }
            Err(e) if e.class == Class::SnapshotCorrupt => {
                tracing::warn!(snapshot = %found, error = %e, "the final snapshot is broken; taking another");
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Takes a new final snapshot and reads it back.
    async fn take_final(&mut self, etcd: &Etcd) -> Result<(Snapshot, String)> {
        let (snapshot, sent) = self.store_full(etcd, true).await?;
        let stored = match fingerprint(&self.settings.store, &snapshot).await {
            Ok(stored) => stored,
            Err(e) => return Err(self.delete_unverified(&snapshot, e).await),
        };
        if stored != sent {
            let what = format!(
                "{snapshot} was stored with the sha256 {sent} and reads back with {stored}: the object store changes \
                 what it is given; ask again, and look for a proxy or a broken disk in between if it comes again"
            );
            let error = Error::new(Class::SnapshotUnverified, what);
            return Err(self.delete_unverified(&snapshot, error).await);
        }
        Ok((snapshot, sent))
    }

    /// etcd's revision, if the snapshot holds every acknowledged write.
    async fn check_end(&self, etcd: &Etcd, snapshot: &Snapshot, sealed: Option<i64>) -> Result<i64> {
        let revision = etcd.revision().await?;
        if holds_all_acknowledged(snapshot.last_revision, revision, sealed) {
            return Ok(revision);
        }
        let what = format!(
            "etcd is at revision {revision} and {snapshot} ends at {}: something writes to etcd still. Stop it \
             (kube-apiserver and everything else that writes), then ask again",
            snapshot.last_revision
        );
        Err(self
            .delete_unverified(snapshot, Error::new(Class::Overtaken, what))
            .await)
    }

    /// Deletes a final snapshot that failed verification: a copy would take that snapshot for the end.
    async fn delete_unverified(&self, snapshot: &Snapshot, error: Error) -> Error {
        let removed = self.settings.store.hide(snapshot).await;
        let Err(e) = removed else { return error };
        let message = format!("{}; and it could not be removed: {}", error.message, e.message);
        Error::new(error.class, message)
    }

    /// Leaves the finished state, in the store too, so that a restart does not restore that state.
    async fn resume(&mut self) -> Result<bool> {
        let recorded = match Proof::recorded(&self.settings.store).await {
            Ok(proof) => proof.is_some_and(|proof| proof.epoch == self.settings.store.epoch()),
            // An unreadable record does not keep the snapshotter in the finished state.
            Err(e) if e.class == Class::SnapshotUnparsable => true,
            Err(e) => return Err(e),
        };
        if !recorded && !self.state.is_finished() {
            return Ok(false);
        }
        self.leave("somebody asked to resume").await?;
        Ok(true)
    }

    async fn leave(&mut self, why: &str) -> Result<()> {
        Proof::forget(&self.settings.store).await?;
        tracing::info!(
            why,
            "the final snapshot is no longer the end; snapshots are taken again"
        );
        self.read_back_by_this_process = false;
        self.state.resumed();
        self.begin_with = Some(why.to_owned());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_epoch_needs_its_sealed_revision_and_any_other_epoch_an_etcd_that_stands_still() {
        for (last, etcd_revision, sealed, holds) in [
            (9, 9, None, true),
            (9, 10, None, false),
            // Leases expired after the seal.
            (9, 10, Some(9), true),
            (10, 12, Some(9), true),
            // The snapshot lacks an acknowledged write.
            (8, 10, Some(9), false),
            // etcd has less than the snapshot.
            (10, 9, None, false),
            (10, 9, Some(9), false),
        ] {
            let found = holds_all_acknowledged(last, etcd_revision, sealed);
            assert_eq!(found, holds, "{last} {etcd_revision} {sealed:?}");
        }
    }
}
