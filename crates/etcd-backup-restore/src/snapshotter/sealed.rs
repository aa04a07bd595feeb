//! After the seal: the final snapshot, once, whenever bucket and etcd can be reached again (R17-46), and nothing else.

use super::proof::Proof;
use super::requests::{Request, Urgent};
use super::worker::Worker;
use super::{PAUSES, Snapshotter};
use crate::error::{Class, Error, Result};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

impl Snapshotter {
    /// Tries until the final snapshot is proven, then answers; ends when told to stop, but not in the middle of a try.
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
                    // Whoever has given up waiting needs no try of his own.
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
                    // Once for each kind: it may stay so for days.
                    if told.replace(e.class) == Some(e.class) {
                        tracing::debug!(class = e.class.word(), error = %e, "still no final snapshot");
                    } else {
                        tracing::warn!(class = e.class.word(), error = %e, "the final snapshot is not taken yet; it is tried again");
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
    }
}

fn sealed() -> Error {
    let what = "this ownership epoch is sealed: there is its final snapshot, and no other follows";
    Error::new(Class::Finished, what)
}

impl Worker {
    /// Gives the one that was taken since the seal, also by an earlier process and whatever etcd did since (its leases run
    /// out); takes it where there is none.
    async fn finish_sealed(&mut self) -> Result<Proof> {
        if let Some(proof) = self.state.proof() {
            return Ok(proof);
        }
        let store = &self.settings.store;
        let recorded = match Proof::recorded(store).await {
            // It is written anew.
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
            self.state.finished(proof.clone());
            return Ok(proof);
        }
        self.finish(true).await
    }
}
