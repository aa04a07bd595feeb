//! Garbage collection, with its own period: neither an extreme schedule of full snapshots nor a failing etcd
//! delays a collection.

use super::state::State;
use super::worker::Settings;
use crate::clock;
use crate::error::Result;
use crate::garbage;
use crate::metrics::Metrics;
use crate::snapshot_name::Snapshot;
use crate::store::{Deletion, Store};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// Delay of the first collection: short, so that a process that is restarted more often than the period
/// collects too.
const FIRST: Duration = Duration::from_secs(10 * 60);

pub(super) struct Collector {
    store: Arc<Store>,
    policy: garbage::Policy,
    max_backups: usize,
    period: Duration,
    due: Instant,
    state: Arc<State>,
    metrics: Arc<Metrics>,
    /// Snapshots whose deletion the store refused in the last collection, with the store's code.
    refused: BTreeMap<String, String>,
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
            refused: BTreeMap::new(),
        }
    }

    /// Collects at each due time. May be dropped at any time: a due collection stays due.
    pub(super) async fn run(&mut self) {
        loop {
            sleep_until(self.due).await;
            // After the final snapshot the store must not change.
            if !self.state.is_finished()
                && let Err(e) = self.collect().await
            {
                tracing::warn!(class = e.class.as_str(), error = %e, "garbage was not collected");
            }
            self.due = Instant::now() + self.period;
        }
    }

    async fn collect(&mut self) -> Result<()> {
        let listing = self.store.list().await?;
        let now = clock::now().as_second();
        let mut victims = garbage::victims(&listing, self.policy, self.max_backups, now);
        victims.extend(self.superseded(&listing, now).await?);
        let mut refused = BTreeMap::new();
        for victim in victims {
            match self.store.delete(&victim).await? {
                Deletion::Deleted => {
                    self.metrics.collected(victim.kind);
                    tracing::info!(snapshot = %victim, "collected");
                }
                Deletion::Refused(code) => {
                    self.metrics.collection_refused(victim.kind);
                    refused.insert(victim.to_string(), code);
                }
            }
        }
        self.report_refused(refused);
        Ok(())
    }

    /// Reports refused deletions once: a retention policy refuses the same deletions in every collection
    /// until the retention ends.
    fn report_refused(&mut self, refused: BTreeMap<String, String>) {
        let mut new = refused
            .iter()
            .filter(|(name, _)| !self.refused.contains_key(*name));
        if let Some((snapshot, code)) = new.next() {
            tracing::warn!(
                snapshot,
                code,
                refused = refused.len(),
                "the store refuses the deletion of snapshots that the policy gives up; allow the deletion to the account of \
                 the backup Secret, or wait until the retention of the bucket ends"
            );
        }
        self.refused = refused;
    }

    /// The superseded snapshots of earlier epochs. Without a recorded chain the needed snapshots are unknown,
    /// so no snapshot is superseded.
    async fn superseded(&self, listing: &[Snapshot], now: i64) -> Result<Vec<Snapshot>> {
        let Some(recorded) = self.store.recorded(self.store.epoch()).await? else {
            return Ok(Vec::new());
        };
        let everything = self.store.everything().await?;
        let policy = (self.policy, self.max_backups);
        Ok(garbage::superseded(&everything, listing, &recorded, policy, now))
    }
}
