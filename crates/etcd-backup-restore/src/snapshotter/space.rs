//! The room below etcd's quota: reported, and alarm NOSPACE disarmed once there is room.
//!
//! etcd raises the alarm when the quota is reached and never disarms the alarm. Without this task an etcd
//! whose quota was raised, or whose database was defragmented, would refuse writes until a person disarms the
//! alarm.

use super::state::State;
use crate::error::Result;
use crate::etcd::EtcdConfig;
use crate::metrics::Metrics;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Period of the question. No watch of etcd reports alarms. Shorter than the period in which etcd-druid asks
/// this process, 30 s, and a local read for etcd.
const SPACE_POLL_INTERVAL: Duration = Duration::from_secs(15);

pub(super) struct SpaceWatch {
    etcd: EtcdConfig,
    state: Arc<State>,
    metrics: Arc<Metrics>,
}

impl SpaceWatch {
    pub(super) fn new(etcd: EtcdConfig, state: Arc<State>, metrics: Arc<Metrics>) -> Self {
        Self { etcd, state, metrics }
    }

    /// Asks periodically, without end. May be dropped at any time.
    pub(super) async fn run(&self) {
        let mut ticks = interval(SPACE_POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.check().await {
                // The snapshotter reports an etcd that does not answer.
                tracing::debug!(%error, "etcd did not report its size");
            }
        }
    }

    async fn check(&self) -> Result<()> {
        let etcd = self.etcd.connect().await?;
        let mut space = etcd.space().await?;
        // After the final snapshot etcd stays as it is.
        if space.alarm && space.has_room() && !self.state.is_finished() {
            etcd.disarm_no_space().await?;
            tracing::info!(
                size = space.used,
                quota = space.quota,
                "disarmed alarm NOSPACE: there is room below the quota"
            );
            space = etcd.space().await?;
        }
        let had_alarm = self.state.space().is_some_and(|before| before.alarm);
        if space.alarm && !had_alarm {
            tracing::warn!(
                size = space.used,
                quota = space.quota,
                "etcd refuses writes: alarm NOSPACE is raised, and the database has no room below the quota"
            );
        }
        self.metrics.space(space);
        self.state.note_space(space);
        Ok(())
    }
}
