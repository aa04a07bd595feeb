//! Metrics of the managed shoots and objects, for `/metrics`.

use prometheus_client::metrics::gauge::Gauge;
use runtime::process::metrics::Metrics;

/// The number of shoots and objects.
#[derive(Clone, Default)]
pub struct Numbers {
    shoots: Gauge,
    objects: Gauge,
}

impl Numbers {
    /// Registers the metrics.
    #[must_use]
    pub fn new(metrics: &Metrics) -> Self {
        let numbers = Self::default();
        metrics.register(|registry| {
            let shoots = numbers.shoots.clone();
            registry.register(
                "resource_manager_shoots",
                "Shoots that there are connections to",
                shoots,
            );
            let objects = numbers.objects.clone();
            registry.register("resource_manager_objects", "Objects that are kept", objects);
        });
        numbers
    }

    /// Sets the values.
    pub fn set(&self, shoots: usize, objects: usize) {
        self.shoots.set(i64::try_from(shoots).unwrap_or(i64::MAX));
        self.objects.set(i64::try_from(objects).unwrap_or(i64::MAX));
    }
}
