//! What every controller of the process is given.

use std::sync::Arc;

use runtime::{Events, Garden, apply::FieldManager, metrics::Metrics, runner};
use tokio_util::sync::CancellationToken;

use crate::Config;

/// Who writes.
pub const MANAGER: FieldManager = FieldManager("garden-controller-manager");

/// What every controller of the process is given.
#[derive(Clone)]
pub struct Context {
    /// The garden.
    pub garden: Garden,
    /// Flags.
    pub config: Arc<Config>,
    /// Events in the garden.
    pub events: Events,
    /// The process's metrics.
    pub metrics: Metrics,
    /// Cancelled when the process is to end.
    pub shutdown: CancellationToken,
}

impl Context {
    /// What the runner of a controller needs.
    #[must_use]
    pub fn runner(&self) -> runner::Settings {
        runner::Settings {
            concurrency: self.config.concurrent_syncs,
            shutdown: self.shutdown.clone(),
            metrics: self.metrics.clone(),
            events: self.events.clone(),
        }
    }
}
