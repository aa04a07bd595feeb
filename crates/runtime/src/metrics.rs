//! Metrics in the Prometheus text format, one registry a process.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

/// Labels of the runner's metrics.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ControllerLabels {
    /// Name of the controller.
    pub controller: String,
    /// `success` or an error class.
    pub result: String,
}

/// A process's metrics.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    reconciles: Family<ControllerLabels, Counter>,
    durations: Family<ControllerLabels, Histogram>,
}

impl Default for Metrics {
    fn default() -> Self {
        let reconciles = Family::<ControllerLabels, Counter>::default();
        // From a status write (10 ms) to a whole move (10 minutes).
        let durations = Family::<ControllerLabels, Histogram>::new_with_constructor(|| {
            Histogram::new([0.01, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 180.0, 600.0])
        });
        let mut registry = Registry::default();
        registry.register(
            "controller_reconciles",
            "Reconciliations by controller and result",
            reconciles.clone(),
        );
        registry.register(
            "controller_reconcile_duration_seconds",
            "Duration of reconciliations by controller and result",
            durations.clone(),
        );
        Self {
            registry: Arc::new(Mutex::new(registry)),
            reconciles,
            durations,
        }
    }
}

impl Metrics {
    /// Registers further metrics of a process.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self
            .registry
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner));
    }

    /// Counts one reconciliation.
    pub fn reconciled(&self, controller: &str, result: &str, duration: Duration) {
        let labels = ControllerLabels {
            controller: controller.to_owned(),
            result: result.to_owned(),
        };
        self.reconciles.get_or_create(&labels).inc();
        self.durations
            .get_or_create(&labels)
            .observe(duration.as_secs_f64());
    }

    /// All metrics as text.
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        let registry = self
            .registry
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // Writing to a String cannot fail; an encoder of a metric could, and then the text ends there.
        let _ = encode(&mut text, &registry);
        text
    }
}
