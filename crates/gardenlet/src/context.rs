//! What every controller of a gardenlet is given.

use std::{sync::Arc, time::Duration};

use parts::Settings;
use runtime::{Cluster, Events, Garden, Seed, apply::FieldManager, metrics::Metrics, runner};
use tokio::{sync::watch, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::Config;

/// Who writes.
pub const MANAGER: FieldManager = FieldManager("gardenlet");

/// What every controller of a gardenlet is given.
#[derive(Clone)]
pub struct Context {
    /// The garden, with the identity of this seed.
    pub garden: Garden,
    /// The seed.
    pub seed: Seed,
    /// The seed's name in the garden.
    pub seed_name: String,
    /// How flows are run.
    pub settings: Arc<Settings>,
    /// Flags.
    pub config: Arc<Config>,
    /// Events in the garden.
    pub garden_events: Events,
    /// The process's metrics.
    pub metrics: Metrics,
    /// Cancelled when the process is to end.
    pub shutdown: CancellationToken,
    /// When the seed's Lease was last renewed.
    pub heartbeat: Heartbeat,
}

impl Context {
    /// What the runner of a controller needs.
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

    /// What the controllers of backups need, which have a crate of their own.
    #[must_use]
    pub fn backups(&self) -> backup_controllers::Context {
        backup_controllers::Context {
            garden: self.garden.clone(),
            seed: self.seed.clone(),
            seed_name: self.seed_name.clone(),
            deletion_grace: self.config.backup_entry_grace(),
            runner: self.runner(),
        }
    }
}

/// When the seed's Lease was last renewed, shared between the part that renews it and the part that tells of it.
#[derive(Clone, Debug)]
pub struct Heartbeat(watch::Sender<Option<Instant>>);

impl Default for Heartbeat {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Heartbeat {
    /// The Lease was renewed now.
    pub fn beat(&self) {
        self.0.send_replace(Some(Instant::now()));
    }

    /// Whether it was renewed within this time.
    #[must_use]
    pub fn is_fresh(&self, within: Duration) -> bool {
        self.0.borrow().is_some_and(|last| last.elapsed() <= within)
    }

    /// Notified of each renewal.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<Option<Instant>> {
        self.0.subscribe()
    }
}
