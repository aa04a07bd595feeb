//! The metrics of the election in the format of Prometheus (feature `metrics`).

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// From a hand-over by a watch (some 10 ms) to a hand-over at a busy API server.
const BUCKETS: [f64; 10] = [0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 15.0, 60.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Labels {
    name: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct RefusalLabels {
    name: String,
    reason: &'static str,
}

/// The families of all locks of a process.
#[derive(Clone, Debug)]
pub(crate) struct Families {
    active: Family<Labels, Gauge>,
    handover: Family<Labels, Histogram>,
    refusals: Family<RefusalLabels, Counter>,
}

impl Default for Families {
    fn default() -> Self {
        Self {
            active: Family::default(),
            handover: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            refusals: Family::default(),
        }
    }
}

impl Families {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "leader_active",
            "Whether the lock of this name is held by this process",
            self.active.clone(),
        );
        registry.register(
            "leader_refusals",
            "Attempts to see or take the lock of this name that failed, by reason",
            self.refusals.clone(),
        );
        registry.register_with_unit(
            "leader_handover_duration",
            "From the moment a candidate saw the previous holder go until it held the lock",
            Unit::Seconds,
            self.handover.clone(),
        );
    }

    pub(crate) fn set_active(&self, name: &str, active: bool) {
        self.active.get_or_create(&labels(name)).set(i64::from(active));
    }

    pub(crate) fn refused(&self, name: &str, reason: &'static str) {
        let labels = RefusalLabels {
            name: name.to_owned(),
            reason,
        };
        self.refusals.get_or_create(&labels).inc();
    }

    pub(crate) fn handed_over(&self, name: &str, took: Duration) {
        self.handover
            .get_or_create(&labels(name))
            .observe(took.as_secs_f64());
    }
}

fn labels(name: &str) -> Labels {
    Labels {
        name: name.to_owned(),
    }
}
