//! Stores the collected changes: in turn, on request, and before the process ends.

use super::changes::Changes;
use super::worker::Worker;
use crate::error::{Class, Error, Result};
use crate::etcd::Etcd;
use crate::snapshot_name::{Kind, Snapshot};
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Timeout of catching up with etcd for a requested delta. Must be shorter than a caller's own timeout of a
/// minute.
pub(super) const CATCH_UP: Duration = Duration::from_secs(45);
/// Timeout of catching up for the last delta after SIGTERM: etcd gets SIGTERM at the same time and may be
/// gone.
const LAST_CATCH_UP: Duration = Duration::from_secs(5);

impl Worker {
    /// Stores the collected changes before the process ends, and the changes that etcd still delivers within
    /// the timeout.
    pub(super) async fn last_delta(&self, etcd: &Etcd, changes: Option<&mut Changes>) {
        let Some(changes) = changes else { return };
        let caught_up = timeout(LAST_CATCH_UP, async {
            let revision = etcd.revision().await?;
            self.store_up_to(changes, revision).await
        });
        if let Ok(Err(e)) = caught_up.await {
            tracing::info!(error = %e, "etcd is gone; storing what was collected");
        }
        self.keep(changes).await;
    }

    /// Tries to store the collected changes.
    pub(super) async fn keep(&self, changes: &mut Changes) {
        if let Err(e) = self.flush(changes).await {
            tracing::warn!(class = e.class.as_str(), error = %e, "what was collected could not be stored");
        }
        if changes.inside {
            tracing::warn!("what was collected last ends in the middle of a change and is not stored");
        }
    }

    pub(super) async fn requested_delta(
        &self,
        etcd: &Etcd,
        changes: Option<&mut Changes>,
    ) -> Result<Option<Snapshot>> {
        let Some(changes) = changes else {
            return Err(Error::new(
                Class::Configuration,
                "delta snapshots are switched off by --delta-snapshot-period",
            ));
        };
        let revision = etcd.revision().await?;
        match timeout(CATCH_UP, self.store_up_to(changes, revision)).await {
            Ok(stored) => stored,
            Err(_) => Err(Error::new(
                Class::Etcd,
                format!("etcd did not send revision {revision}, or the store did not take it, in time"),
            )),
        }
    }

    /// Stores all changes up to a revision, as several deltas if the changes exceed the memory limit; returns
    /// the last delta.
    pub(super) async fn store_up_to(&self, changes: &mut Changes, revision: i64) -> Result<Option<Snapshot>> {
        let mut stored = None;
        while !changes.has(revision) {
            changes.read().await?;
            if changes.is_due_at_once(self.settings.delta_limit) {
                stored = self.flush(changes).await?.or(stored);
            }
        }
        Ok(self.flush(changes).await?.or(stored))
    }

    /// Stores the collected changes; returns the last delta. May be dropped or fail: the next try stores the
    /// delta.
    pub(super) async fn flush(&self, changes: &mut Changes) -> Result<Option<Snapshot>> {
        let mut last = None;
        loop {
            changes.seal(self.settings.compression)?;
            let Some((snapshot, packed)) = &changes.packed_delta else {
                return Ok(last);
            };
            let begun = Instant::now();
            let stored = async {
                let mut upload = self.settings.store.upload(snapshot)?;
                upload.write(packed).await?;
                upload.complete().await
            };
            let stored = stored.await;
            self.metrics.observe(Kind::Delta, stored.is_ok(), begun.elapsed());
            stored?;
            tracing::info!(%snapshot, bytes = snapshot.size, "stored");
            self.state.stored(snapshot);
            let latest = self.state.latest();
            self.metrics.latest(latest.full.as_ref(), &latest.deltas);
            self.metrics.required(Kind::Delta, false);
            last = changes.packed_delta.take().map(|(snapshot, _)| snapshot);
            changes.urgent = None;
        }
    }
}
