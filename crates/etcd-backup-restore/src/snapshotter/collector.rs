//! Garbage collection, on a period of its own: neither a schedule that fires often nor one that never does, nor a failing
//! etcd, keeps it from its turn.

use super::state::State;
use super::worker::Settings;
use crate::clock;
use crate::error::Result;
use crate::garbage;
use crate::metrics::Metrics;
use crate::snapshot_name::Snapshot;
use crate::store::Store;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The first one comes this early, so that a process which is restarted more often than the period collects too.
const FIRST: Duration = Duration::from_secs(10 * 60);

pub(super) struct Collector {
    store: Arc<Store>,
    policy: garbage::Policy,
    max_backups: usize,
    period: Duration,
    due: Instant,
    state: Arc<State>,
    metrics: Arc<Metrics>,
}

impl Collector {
    pub(super) fn new(settings: &Settings, state: Arc<State>, metrics: Arc<Metrics>) -> Self {
        Self {
            store: settings.store.clone(),
            policy: settings.policy,
            max_backups: settings.max_backups,
            period: settings.gc_period,
            due: Instant::now() + settings.gc_period.min(FIRST),
            state,
            metrics,
        }
    }

    /// Collects whenever it is due. May be dropped at any time: what is due stays due.
    pub(super) async fn run(&mut self) {
        loop {
            sleep_until(self.due).await;
            // After the final snapshot the store stays as it is.
            if !self.state.is_finished()
                && let Err(e) = self.collect().await
            {
                tracing::warn!(class = e.class.word(), error = %e, "garbage was not collected");
            }
            self.due = Instant::now() + self.period;
        }
    }

    async fn collect(&self) -> Result<()> {
        let listing = self.store.list().await?;
        let now = clock::now().as_second();
        let mut victims = garbage::victims(&listing, self.policy, self.max_backups, now);
        victims.extend(self.superseded(&listing, now).await?);
        for victim in victims {
            self.store.delete(&victim).await?;
            self.metrics.collected(victim.kind);
            tracing::info!(snapshot = %victim, "collected");
        }
        Ok(())
    }

    /// Of earlier epochs. Where none was chosen to begin with, nobody knows what of them is needed.
    async fn superseded(&self, listing: &[Snapshot], now: i64) -> Result<Vec<Snapshot>> {
        let Some(recorded) = self.store.recorded(self.store.epoch()).await? else {
            return Ok(Vec::new());
        };
        let everything = self.store.everything().await?;
        let policy = (self.policy, self.max_backups);
        Ok(garbage::superseded(&everything, listing, &recorded, policy, now))
    }
}
