//! The steps after a loss of ownership: the seal on the volume, the seal in the bucket, the final snapshot,
//! SIGTERM to etcd. Each step is retried until it succeeds.

use super::ownership_controller::OwnershipController;
use crate::error::{Class, Result};
use crate::log;
use crate::snapshotter::{Snapshotter, State};
use crate::store::Sealing;
use mutation::Mutation;
use ownership::{SealProgress, SealStep};
use std::pin::pin;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// Pause after a seal that could not be written: the first, doubled up to the last.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How long etcd may run for its final snapshot when the bucket answers. A large snapshot takes minutes, and
/// SIGTERM would abort it.
const FINAL_WITHIN: Duration = Duration::from_secs(600);

/// Waits longer each time.
struct Patience(Duration);

impl Patience {
    fn new() -> Self {
        Self(PAUSES.0)
    }

    async fn pass(&mut self) {
        sleep(self.0).await;
        self.0 = (self.0 * 2).min(PAUSES.1);
    }
}

impl OwnershipController {
    /// Seals the epoch behind the shut gate. Every step is completed in order: the final snapshot begins only
    /// when the seal is on the disk. A restart in between could otherwise open the gate again if the record
    /// were still read as before.
    pub(super) async fn seal(&self, why: &str, stop: CancellationToken) -> Result<()> {
        log::report_leaving();
        let settings = (self.settings)(&self.process_permit)?;
        let (finale, handle) = Snapshotter::measured(settings, self.metrics.clone());
        let progress = handle.state.clone();
        self.set_handle(handle);
        // Timeline: both seals get the time of a fence. If both are written in time, etcd runs until the
        // final snapshot is stored, at most `FINAL_WITHIN`, and then gets SIGTERM. Otherwise etcd gets
        // SIGTERM at the end of the fence, and the kubelet restarts etcd on loopback for the final snapshot.
        let sealed = async {
            let mut sealed = pin!(self.before_the_final_snapshot(why, &progress));
            let fence = self.check.terms.settings().fence;
            let in_time = timeout(fence, &mut sealed).await.is_ok();
            if !in_time {
                // The wait has no bound from here on: connections that bypassed the gate are cut now.
                self.terminate_etcd();
                sealed.await;
            }
            in_time
        };
        let Some(in_time) = stop.run_until_cancelled(sealed).await else {
            return Ok(());
        };
        let last = async {
            if in_time {
                let saved = timeout(FINAL_WITHIN, progress.until_finished()).await;
                tracing::info!(is_saved = saved.is_ok(), "etcd is not waited for any more");
                self.terminate_etcd();
            }
        };
        tokio::join!(finale.run_sealed(stop.clone()), stop.run_until_cancelled(last));
        Ok(())
    }

    /// In the order of the protocol.
    async fn before_the_final_snapshot(&self, why: &str, progress: &State) {
        let mut done = SealProgress::default();
        if Mutation::FinalSnapshotBeforeSeal.is_active() {
            return;
        }
        loop {
            match done.next_step() {
                Some(SealStep::Marker) => {
                    self.mark(why, progress).await;
                    done.marker = true;
                }
                Some(SealStep::Object) => {
                    self.seal_bucket(progress).await;
                    done.object = true;
                }
                Some(SealStep::FinalSnapshot) | None => return,
            }
        }
    }

    /// Writes the seal until the seal is on the disk. An error is reported in the state of the final
    /// snapshot.
    async fn mark(&self, why: &str, progress: &State) {
        let mut patience = Patience::new();
        loop {
            let (marker, epoch, why) = (
                self.check.marker.clone(),
                self.check.claim.epoch(),
                why.to_owned(),
            );
            let path = marker.path().display().to_string();
            match spawn_blocking(move || marker.write(epoch, &why)).await {
                Ok(Ok(())) => {
                    tracing::info!(path, epoch, "sealed on the volume");
                    return;
                }
                Ok(Err(error)) => {
                    progress.failed(&error);
                    tracing::error!(%error, "the seal is not on the volume yet; it is tried again before the final snapshot");
                }
                Err(error) => tracing::error!(%error, "the seal was not written; it is tried again"),
            }
            patience.pass().await;
        }
    }

    /// Retries until the store accepts or rejects the seal. A store that can never be sealed does not delay
    /// the final snapshot.
    async fn seal_bucket(&self, progress: &State) {
        let (mut patience, mut told) = (Patience::new(), None);
        loop {
            match self.bucket.store.seal(&self.bucket.uid).await {
                Ok(Sealing::Sealed) => return tracing::info!("sealed in the bucket"),
                Ok(Sealing::Left(why)) => return tracing::warn!(why, "ownership.json is left as it is"),
                Err(error) if !matches!(error.class, Class::Store | Class::Credentials) => {
                    return tracing::warn!(%error, "ownership.json cannot be sealed");
                }
                Err(error) => {
                    progress.failed(&error);
                    if told.replace(error.class) != Some(error.class) {
                        tracing::warn!(%error, "the bucket does not answer; it is asked again");
                    }
                }
            }
            patience.pass().await;
        }
    }
}
