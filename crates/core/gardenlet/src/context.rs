//! The shared input of all controllers of a gardenlet.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use api::gardencore::Shoot;
use jiff::Timestamp;
use parts::Settings;
use runtime::{
    client::{Cluster, Garden, Seed, apply::FieldManager},
    controller::{Events, SharedWatch, runner},
    process::metrics::Metrics,
};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{Config, move_trace::MoveTraces};

/// The field manager of all writes.
pub const MANAGER: FieldManager = FieldManager("gardenlet");

/// The shared input of all controllers of a gardenlet.
#[derive(Clone)]
pub struct Context {
    /// The garden, with the identity of this seed.
    pub garden: Garden,
    /// All Shoots, for all controllers: [`shoots::watch`](crate::shoots::watch).
    pub shoots: SharedWatch<Shoot>,
    /// The seed.
    pub seed: Seed,
    /// The seed's name in the garden.
    pub seed_name: String,
    /// The settings of flows.
    pub settings: Arc<Settings>,
    /// Flags.
    pub config: Arc<Config>,
    /// Events in the garden.
    pub garden_events: Events,
    /// The process's metrics.
    pub metrics: Metrics,
    /// Cancelled when the process is to end.
    pub shutdown: CancellationToken,
    /// When the client certificate for the garden expires. `None` where the gardenlet uses a token.
    pub certificate_expiry: Option<Timestamp>,
    /// When the seed's Lease was last renewed.
    pub heartbeat: Heartbeat,
    /// Records the spans of moves.
    pub move_traces: MoveTraces,
}

impl Context {
    /// The settings for the runner of a controller.
    #[must_use]
    pub fn runner(&self) -> runner::Settings {
        runner::Settings {
            concurrency: self.config.concurrent_syncs,
            shutdown: self.shutdown.clone(),
            permit: self.garden.permit().clone(),
            metrics: self.metrics.clone(),
            events: self.garden_events.clone(),
        }
    }

    /// The input of the controllers of backups, which are in a separate crate.
    #[must_use]
    pub fn backups(&self) -> backup_controllers::Context {
        backup_controllers::Context {
            garden: self.garden.clone(),
            seed: self.seed.clone(),
            seed_name: self.seed_name.clone(),
            deletion_grace: self.config.backup_entry_grace(),
            project_share: self.config.project_share(),
            runner: self.runner(),
        }
    }
}

/// Time of the last renewal of the seed's Lease, shared between the renewing task and the reporting tasks.
#[derive(Clone, Debug)]
pub struct Heartbeat {
    beats: watch::Sender<Option<Instant>>,
    /// Since when this process renews the Lease; empty in a replica that does not lead.
    begun: Arc<OnceLock<Instant>>,
}

impl Default for Heartbeat {
    fn default() -> Self {
        Self {
            beats: watch::Sender::new(None),
            begun: Arc::default(),
        }
    }
}

impl Heartbeat {
    /// From now on this process renews the Lease.
    pub fn begin(&self) {
        self.begun.get_or_init(Instant::now);
    }

    /// The Lease was renewed now.
    pub fn beat(&self) {
        self.beats.send_replace(Some(Instant::now()));
    }

    /// The failure for `/readyz`, if this process renews the Lease and no renewal has succeeded for longer
    /// than `within`.
    #[must_use]
    pub fn overdue(&self, within: Duration) -> Option<String> {
        let begun = self.begun.get()?;
        let silence = self.beats.borrow().unwrap_or(*begun).elapsed();
        (silence > within).then(|| {
            format!(
                "the seed's Lease in the garden was not renewed for {} s",
                silence.as_secs()
            )
        })
    }

    /// Whether the Lease was renewed within this time.
    #[must_use]
    pub fn is_fresh(&self, within: Duration) -> bool {
        self.beats.borrow().is_some_and(|last| last.elapsed() <= within)
    }

    /// Notified of each renewal.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Option<Instant>> {
        self.beats.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_gardenlet_that_leads_is_ready_while_it_renews_the_lease_of_its_seed() {
        let (heartbeat, within) = (Heartbeat::default(), Duration::from_secs(40));
        // A replica that waits for the lock renews no Lease.
        tokio::time::advance(Duration::from_secs(90)).await;
        assert_eq!(heartbeat.overdue(within), None);
        heartbeat.begin();
        assert_eq!(heartbeat.overdue(within), None);
        tokio::time::advance(Duration::from_secs(41)).await;
        let why = "the seed's Lease in the garden was not renewed for 41 s";
        assert_eq!(heartbeat.overdue(within).as_deref(), Some(why));
        heartbeat.beat();
        assert_eq!(heartbeat.overdue(within), None);
    }
}
