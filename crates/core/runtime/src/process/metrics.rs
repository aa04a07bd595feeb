//! Metrics in the Prometheus text format, with one registry per process.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::ResourceExt;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeLabelSet, text::encode},
    metrics::{MetricType, counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use super::external_requests;

/// Labels of the runner's metrics.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct ControllerLabels {
    /// Name of the controller.
    pub controller: String,
    /// `success` or an error class.
    pub result: String,
}

/// Label of the gauges of a controller: the name of the controller.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct SyncLabels {
    controller: &'static str,
}

/// A series of a gauge, as a scrape reads the series.
#[derive(Clone, Debug, PartialEq)]
pub struct ScrapedSeries {
    /// Names and values of the labels.
    pub labels: Vec<(&'static str, String)>,
    /// The value of the gauge.
    pub value: f64,
}

impl ScrapedSeries {
    /// A series with these labels.
    #[must_use]
    pub fn new<const N: usize>(labels: [(&'static str, &str); N], value: f64) -> Self {
        Self {
            labels: labels.map(|(name, label)| (name, label.to_owned())).into(),
            value,
        }
    }

    /// A series of a namespaced object, with the labels `namespace` and `name` before these labels.
    pub fn of_object<const N: usize>(
        object: &impl ResourceExt,
        labels: [(&'static str, &str); N],
        value: f64,
    ) -> Self {
        let mut series = Self::new(labels, value);
        let place = [
            ("namespace", object.namespace().unwrap_or_default()),
            ("name", object.name_any()),
        ];
        series.labels.splice(0..0, place);
        series
    }
}

/// A gauge that reads the series at each scrape, so that the series of an object end with the object.
struct ScrapedGauge {
    name: &'static str,
    help: &'static str,
    read: Box<dyn Fn() -> Vec<ScrapedSeries> + Send + Sync>,
}

impl fmt::Debug for ScrapedGauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Collector for ScrapedGauge {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut gauge = encoder.encode_descriptor(self.name, self.help, None, MetricType::Gauge)?;
        for series in (self.read)() {
            if series.labels.is_empty() {
                gauge.encode_gauge(&series.value)?;
            } else {
                gauge.encode_family(&series.labels)?.encode_gauge(&series.value)?;
            }
        }
        Ok(())
    }
}

/// A process's metrics.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    reconciles: Family<ControllerLabels, Counter>,
    durations: Family<ControllerLabels, Histogram>,
    synced: Family<SyncLabels, Gauge>,
    waiting: Family<SyncLabels, Gauge>,
    working: Family<SyncLabels, Gauge>,
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

/// An object in the count of a gauge, until the value is dropped.
pub struct CountedObject(Gauge);

impl Drop for CountedObject {
    fn drop(&mut self) {
        self.0.dec();
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
        let waiting = Family::<SyncLabels, Gauge>::default();
        registry.register(
            "controller_waiting_objects",
            "Objects that wait for a worker of the controller",
            waiting.clone(),
        );
        let working = Family::<SyncLabels, Gauge>::default();
        registry.register(
            "controller_working_objects",
            "Objects that a worker of the controller reconciles now",
            working.clone(),
        );
        external_requests::register(&mut registry);
        Self {
            registry: Arc::new(Mutex::new(registry)),
            reconciles,
            durations,
            synced,
            waiting,
            working,
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

    /// Registers a gauge; `read` returns the series at each scrape. Call once for a name. `read` must neither
    /// block nor use these metrics.
    pub fn register_scraped(
        &self,
        name: &'static str,
        help: &'static str,
        read: impl Fn() -> Vec<ScrapedSeries> + Send + Sync + 'static,
    ) {
        let read = Box::new(read);
        let gauge = ScrapedGauge { name, help, read };
        self.register(|registry| registry.register_collector(Box::new(gauge)));
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

    /// An object begins to wait for a worker.
    #[must_use]
    pub fn begin_wait(&self, controller: &'static str) -> CountedObject {
        count_object(&self.waiting, controller)
    }

    /// A worker begins to reconcile an object.
    #[must_use]
    pub fn begin_work(&self, controller: &'static str) -> CountedObject {
        count_object(&self.working, controller)
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

/// Adds an object to the gauge of a controller.
fn count_object(objects: &Family<SyncLabels, Gauge>, controller: &'static str) -> CountedObject {
    let count = objects.get_or_create(&SyncLabels { controller });
    count.inc();
    CountedObject(count.clone())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn the_series_of_an_object_end_with_the_object() {
        let (metrics, exists) = (Metrics::default(), Arc::new(AtomicBool::new(true)));
        let seen = Arc::clone(&exists);
        metrics.register_scraped("object_state", "State of an object", move || {
            let series = ScrapedSeries::new([("name", "a"), ("state", "Ready")], 1.0);
            seen.load(Ordering::SeqCst)
                .then_some(series)
                .into_iter()
                .collect()
        });
        let line = "object_state{name=\"a\",state=\"Ready\"} 1";
        for present in [true, false, true] {
            exists.store(present, Ordering::SeqCst);
            let text = metrics.encode();
            assert_eq!(text.contains(line), present, "{text}");
            assert!(text.contains("# TYPE object_state gauge"), "{text}");
        }
    }

    #[test]
    fn an_object_counts_until_the_worker_has_ended() {
        let metrics = Metrics::default();
        let counted = |number: u32| {
            let line = format!("controller_working_objects{{controller=\"shoot\"}} {number}");
            let text = metrics.encode();
            assert!(text.contains(&line), "{line} is not in\n{text}");
        };
        let first = metrics.begin_work("shoot");
        let second = metrics.begin_work("shoot");
        counted(2);
        drop(first);
        counted(1);
        drop(second);
        counted(0);
    }
}
