//! Makes room for an etcd that refuses writes: compacts former values, and returns free pages to the file
//! system.
//!
//! kube-apiserver compacts etcd every five minutes, and its compaction begins with a write. While alarm
//! NOSPACE is raised etcd refuses this write, so that history stays although no client needs the history. A
//! defragmentation blocks etcd, and fits only here, where etcd refuses writes anyway.
//!
//! - Never beyond the last revision in the store: the next delta begins after that revision, and a lost
//!   volume is restored from there.
//! - The newest [`WINDOW`] revisions stay if the room suffices, so that watches and paged lists of clients
//!   continue. A client whose revision is compacted lists again.
//! - Never after the final snapshot or the seal, and never during a snapshot: the task of the snapshots does
//!   this work in turn. Each request needs the permit, like any request to etcd.

use super::changes::Changes;
use super::relief::{self, ReliefAttempt};
use super::session::finished;
use super::worker::Worker;
use crate::error::Result;
use crate::etcd::{Etcd, EtcdConfig, Space};
use std::time::Duration;
use tokio::time::Instant;

/// Newest revisions that stay while the room suffices without them.
const WINDOW: i64 = 1000;
/// Bound of a compaction and of a defragmentation: the largest database on a slow disk.
const TIMEOUT: Duration = Duration::from_secs(10 * 60);

impl Worker {
    /// Makes room after a delta of all changes, so that all changes may be compacted.
    pub(super) async fn make_room_after_delta(
        &mut self,
        etcd: &Etcd,
        changes: Option<&mut Changes>,
    ) -> Result<ReliefAttempt> {
        if changes.is_some()
            && let Err(error) = self.requested_delta(etcd, changes).await
        {
            tracing::warn!(%error, "no delta was stored: only changes of earlier snapshots are compacted");
        }
        self.make_room().await
    }

    /// Makes room and disarms the alarm, unless the data alone fill the quota.
    pub(super) async fn make_room(&mut self) -> Result<ReliefAttempt> {
        if self.state.is_finished() {
            return Err(finished());
        }
        let patient = EtcdConfig {
            timeout: TIMEOUT,
            ..self.settings.etcd.clone()
        };
        let etcd = patient.connect().await?;
        let mut blocked = Duration::ZERO;
        let (mut space, compacted) = self.compact_saved(&etcd).await?;
        // etcd counts pages that the last commit has freed as in use, so that only a defragmentation is
        // exact.
        if space.can_be_freed() || compacted || !self.defragmented {
            tracing::warn!(
                size = space.used,
                in_use = space.in_use,
                quota = space.quota,
                "defragmenting etcd, which refuses writes: reads wait until that is done"
            );
            let begun = Instant::now();
            etcd.defragment().await?;
            blocked = begun.elapsed();
            self.defragmented = true;
            space = etcd.space().await?;
        }
        if space.can_be_freed() && space.has_room() {
            etcd.disarm_no_space().await?;
            space = etcd.space().await?;
        }
        Ok(ReliefAttempt {
            report: relief::report(space, space.alarm),
            blocked,
        })
    }

    /// Compacts the revisions that the store has; returns the room, and whether history was compacted.
    async fn compact_saved(&self, etcd: &Etcd) -> Result<(Space, bool)> {
        let revision = etcd.revision().await?;
        let saved = self.state.latest().last_revision();
        // An etcd behind the store runs on old data, and these stay unchanged.
        let saved = if saved > revision { 0 } else { saved };
        let mut space = etcd.space().await?;
        let mut compacted = false;
        for target in [saved.min(revision - WINDOW), saved] {
            if target > 0 && !space.can_be_freed() {
                compacted |= etcd.compact(target).await?;
                space = etcd.space().await?;
            }
        }
        Ok((space, compacted))
    }
}
