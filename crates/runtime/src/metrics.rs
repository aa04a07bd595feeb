//! Metrics in the Prometheus text format, with one registry per process.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
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

/// Label of the gauge that shows whether a controller has listed the controller's objects.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SyncLabels {
    controller: &'static str,
}

/// A process's metrics.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    reconciles: Family<ControllerLabels, Counter>,
    durations: Family<ControllerLabels, Histogram>,
    synced: Family<SyncLabels, Gauge>,
    /// By name, the number of controllers that have not completed the first list yet.
    unsynced: Arc<Mutex<BTreeMap<&'static str, usize>>>,
}

/// A controller without a complete first list. Until the value is dropped, `/readyz` of the process names the
/// controller.
pub struct Unsynced {
    metrics: Metrics,
    controller: &'static str,
}

impl Unsynced {
    /// The controller has completed the first list.
    pub fn synced(self) {
        self.metrics.set_synced(self.controller, 1);
    }
}

impl Drop for Unsynced {
    fn drop(&mut self) {
        let mut unsynced = self.metrics.unsynced();
        if let Some(count) = unsynced.get_mut(self.controller) {
            *count -= 1;
        }
        unsynced.retain(|_, count| *count > 0);
    }
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
        let synced = Family::<SyncLabels, Gauge>::default();
        registry.register(
            "controller_synced",
            "Whether the controller has listed the objects that it works on",
            synced.clone(),
        );
        Self {
            registry: Arc::new(Mutex::new(registry)),
            reconciles,
            durations,
            synced,
            unsynced: Arc::default(),
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

    /// A controller begins the first list.
    #[must_use]
    pub fn begin_sync(&self, controller: &'static str) -> Unsynced {
        self.set_synced(controller, 0);
        *self.unsynced().entry(controller).or_default() += 1;
        Unsynced {
            metrics: self.clone(),
            controller,
        }
    }

    /// Names the controllers without a complete first list; `None` if every controller has listed.
    #[must_use]
    pub fn not_synced(&self) -> Option<String> {
        let unsynced = self.unsynced();
        let names: Vec<_> = unsynced.keys().copied().collect();
        (!names.is_empty()).then(|| {
            format!(
                "these controllers have not listed their objects yet: {}",
                names.join(", ")
            )
        })
    }

    fn set_synced(&self, controller: &'static str, value: i64) {
        self.synced.get_or_create(&SyncLabels { controller }).set(value);
    }

    fn unsynced(&self) -> MutexGuard<'_, BTreeMap<&'static str, usize>> {
        self.unsynced.lock().unwrap_or_else(PoisonError::into_inner)
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
