//! Prometheus metrics, with the names that dashboards for this kind of process use.

use crate::etcd::Space;
use crate::owner::{PreparedRefusal, RequestClass};
use crate::snapshot_name::{Kind, Snapshot};
use prometheus_client::encoding::{
    EncodeLabelSet,
    text::{encode, encode_registry},
};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use std::time::Duration;

/// `kind`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// `kind` and `succeeded`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    kind: &'static str,
    succeeded: &'static str,
}

/// `state`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

/// `process` and `version`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    process: &'static str,
    version: &'static str,
}

/// `result`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PassageLabel {
    result: &'static str,
}

/// How a connection through the gate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// Both sides had closed the stream.
    Ended,
    /// A side broke off, or etcd did not answer.
    Broken,
    /// The permit ended.
    Cut,
    /// The connection exceeded the limit of connections.
    Refused,
}

/// `class`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabel {
    class: &'static str,
}

/// `reason`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

/// Connections and requests through a gate. A clone counts into the same series. A gate that forwards bytes
/// knows no requests.
#[derive(Clone, Default)]
pub struct GateMetrics {
    passages: Family<PassageLabel, Counter>,
    open: Gauge,
    requests: Family<ClassLabel, Counter>,
    writes: Gauge,
    prepared: Gauge,
    prepared_refused: Counter,
    prepared_requests_refused: Family<ReasonLabel, Counter>,
}

impl GateMetrics {
    /// Connections through the gate came or went.
    pub fn connections(&self, more: i64) {
        self.open.inc_by(more);
    }

    fn register(&self, registry: &mut Registry, prefix: &str, gate: &str) {
        registry.register(
            format!("{prefix}_connections"),
            format!("Connections through {gate} that have ended, and how"),
            self.passages.clone(),
        );
        registry.register(
            format!("{prefix}_open_connections"),
            format!("Connections through {gate} now"),
            self.open.clone(),
        );
        registry.register(
            format!("{prefix}_requests"),
            format!("Requests through {gate}, where the gate forwards HTTP/2"),
            self.requests.clone(),
        );
        registry.register(
            format!("{prefix}_writes_under_way"),
            format!("Writes through {gate} that etcd has not answered, where the gate forwards HTTP/2"),
            self.writes.clone(),
        );
        registry.register(
            format!("{prefix}_prepared_connections"),
            format!("Connections through {gate} now with the certificate of a preparation"),
            self.prepared.clone(),
        );
        registry.register(
            format!("{prefix}_prepared_connections_refused"),
            format!(
                "Connections that {gate} refused, with the certificate of a preparation that is not listed, or beyond \
                 the share of preparations"
            ),
            self.prepared_refused.clone(),
        );
        registry.register(
            format!("{prefix}_prepared_requests_refused"),
            format!("Requests with the certificate of a preparation that {gate} refused, and why"),
            self.prepared_requests_refused.clone(),
        );
    }

    /// Connections with the certificate of a preparation came or went.
    pub fn prepared_connections(&self, more: i64) {
        self.prepared.inc_by(more);
    }

    /// A connection with the certificate of a preparation was refused.
    pub fn prepared_refused(&self) {
        self.prepared_refused.inc();
    }

    /// A request with the certificate of a preparation was refused.
    pub fn prepared_request_refused(&self, refusal: PreparedRefusal) {
        let reason = refusal.as_str();
        let refused = self
            .prepared_requests_refused
            .get_or_create(&ReasonLabel { reason });
        refused.inc();
    }

    /// A request came.
    pub fn request(&self, class: RequestClass) {
        let class = class.as_str();
        self.requests.get_or_create(&ClassLabel { class }).inc();
    }

    /// Writes were sent to etcd or were answered.
    pub fn writes(&self, more: i64) {
        self.writes.inc_by(more);
    }

    /// A connection to the gate has ended.
    pub fn passed(&self, how: Passage) {
        let result = match how {
            Passage::Ended => "ended",
            Passage::Broken => "broken",
            Passage::Cut => "cut",
            Passage::Refused => "refused",
        };
        self.passages.get_or_create(&PassageLabel { result }).inc();
    }
}

/// All metrics.
pub struct Metrics {
    registry: Registry,
    /// The metric that all processes of the suite have, without the prefix of this process.
    of_suite: Registry,
    duration: Family<OutcomeLabel, Histogram>,
    revision: Family<KindLabel, Gauge>,
    timestamp: Family<KindLabel, Gauge>,
    required: Family<KindLabel, Gauge>,
    collected: Family<KindLabel, Counter>,
    collection_refused: Family<KindLabel, Counter>,
    deltas: Gauge,
    delta_revisions: Gauge,
    no_space: Gauge,
    database_size: Gauge,
    in_use: Gauge,
    quota: Gauge,
    room_made: Family<PassageLabel, Counter>,
    ownership: Family<StateLabel, Gauge>,
    owned: Gauge,
    record_confirmed: Gauge,
    gate: GateMetrics,
    events_gate: GateMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("etcdbr");
        let buckets: fn() -> Histogram = || Histogram::new(exponential_buckets(0.05, 2.0, 14));
        let metrics = Self {
            duration: Family::new_with_constructor(buckets),
            revision: Family::default(),
            timestamp: Family::default(),
            required: Family::default(),
            collected: Family::default(),
            collection_refused: Family::default(),
            deltas: Gauge::default(),
            delta_revisions: Gauge::default(),
            no_space: Gauge::default(),
            database_size: Gauge::default(),
            in_use: Gauge::default(),
            quota: Gauge::default(),
            room_made: Family::default(),
            ownership: Family::default(),
            owned: Gauge::default(),
            record_confirmed: Gauge::default(),
            gate: GateMetrics::default(),
            events_gate: GateMetrics::default(),
            registry: Registry::default(),
            of_suite: build_info(),
        };
        registry.register(
            "snapshot_duration_seconds",
            "Time to take and store a snapshot",
            metrics.duration.clone(),
        );
        registry.register(
            "snapshot_latest_revision",
            "Last revision in the store",
            metrics.revision.clone(),
        );
        registry.register(
            "snapshot_latest_timestamp",
            "When the newest snapshot began",
            metrics.timestamp.clone(),
        );
        registry.register(
            "snapshot_required",
            "1 where etcd is ahead of the store",
            metrics.required.clone(),
        );
        registry.register("snapshot_gc", "Collected objects", metrics.collected.clone());
        registry.register(
            "snapshot_gc_refused",
            "Deletions of garbage that the store refused",
            metrics.collection_refused.clone(),
        );
        registry.register(
            "snapstore_latest_deltas_total",
            "Deltas after the newest full",
            metrics.deltas.clone(),
        );
        registry.register(
            "snapstore_latest_deltas_revisions_total",
            "Revisions in the deltas after the newest full",
            metrics.delta_revisions.clone(),
        );
        metrics.register_space(&mut registry);
        metrics.register_owner(&mut registry);
        Self { registry, ..metrics }
    }
}

impl Metrics {
    fn register_space(&self, registry: &mut Registry) {
        registry.register(
            "etcd_no_space",
            "1 where etcd refuses writes because alarm NOSPACE is raised",
            self.no_space.clone(),
        );
        registry.register(
            "etcd_database_bytes",
            "Size of etcd's database file",
            self.database_size.clone(),
        );
        registry.register(
            "etcd_database_in_use_bytes",
            "Bytes of etcd's database without free pages",
            self.in_use.clone(),
        );
        registry.register(
            "etcd_room_made",
            "Attempts to make room for etcd while alarm NOSPACE is raised, and their result",
            self.room_made.clone(),
        );
        registry.register(
            "etcd_quota_bytes",
            "Quota of etcd's database; 0 where etcd does not report the quota",
            self.quota.clone(),
        );
    }

    /// Room of etcd.
    pub fn space(&self, space: Space) {
        let bytes = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.no_space.set(i64::from(space.alarm));
        self.database_size.set(bytes(space.used));
        self.in_use.set(bytes(space.in_use));
        self.quota.set(bytes(space.quota));
    }

    /// An attempt to make room for etcd has ended.
    pub fn room_made(&self, result: &'static str) {
        self.room_made.get_or_create(&PassageLabel { result }).inc();
    }

    fn register_owner(&self, registry: &mut Registry) {
        registry.register(
            "ownership_state",
            "1 for the state of the owner check",
            self.ownership.clone(),
        );
        registry.register(
            "ownership_latest_confirmation_timestamp",
            "When the seed was last confirmed as the owner",
            self.owned.clone(),
        );
        registry.register(
            "owner_record_confirmed",
            "1 where the last check found the owner record of this seed on the DNS servers",
            self.record_confirmed.clone(),
        );
        self.gate.register(registry, "gate", "the gate");
        self.events_gate
            .register(registry, "events_gate", "the gate for Events");
    }

    /// Whether the owner check is in a state.
    pub fn ownership(&self, state: &'static str, is_it: bool) {
        self.ownership
            .get_or_create(&StateLabel { state })
            .set(i64::from(is_it));
    }

    /// The seed was confirmed as the owner.
    pub fn owned(&self, at: i64) {
        self.owned.set(at);
    }

    /// Whether the owner record in DNS confirmed the owner in the last check.
    pub fn owner_record_confirmed(&self, is_confirmed: bool) {
        self.record_confirmed.set(i64::from(is_confirmed));
    }

    /// Of the gate in front of etcd.
    #[must_use]
    pub fn gate(&self) -> GateMetrics {
        self.gate.clone()
    }

    /// Of the gate in front of the etcd with the Events.
    #[must_use]
    pub fn events_gate(&self) -> GateMetrics {
        self.events_gate.clone()
    }

    /// A snapshot was tried.
    pub fn observe(&self, kind: Kind, succeeded: bool, took: Duration) {
        let succeeded = if succeeded { "true" } else { "false" };
        self.duration
            .get_or_create(&OutcomeLabel {
                kind: kind.as_str(),
                succeeded,
            })
            .observe(took.as_secs_f64());
    }

    /// Records the newest full snapshot and the last delta of the store.
    pub fn latest(&self, full: Option<&Snapshot>, deltas: &[Snapshot]) {
        for snapshot in full.into_iter().chain(deltas.last()) {
            let label = KindLabel {
                kind: snapshot.kind.as_str(),
            };
            self.revision.get_or_create(&label).set(snapshot.last_revision);
            self.timestamp.get_or_create(&label).set(snapshot.created);
        }
        self.deltas.set(i64::try_from(deltas.len()).unwrap_or(i64::MAX));
        self.delta_revisions.set(
            deltas
                .iter()
                .map(|d| d.last_revision - d.start_revision + 1)
                .sum(),
        );
    }

    /// Whether etcd holds changes that a snapshot of the kind would add.
    pub fn required(&self, kind: Kind, required: bool) {
        self.required
            .get_or_create(&KindLabel { kind: kind.as_str() })
            .set(i64::from(required));
    }

    /// An object was collected.
    pub fn collected(&self, kind: Kind) {
        self.collected
            .get_or_create(&KindLabel { kind: kind.as_str() })
            .inc();
    }

    /// The store refused the deletion of an object.
    pub fn collection_refused(&self, kind: Kind) {
        self.collection_refused
            .get_or_create(&KindLabel { kind: kind.as_str() })
            .inc();
    }

    /// The text of `/metrics`.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode_registry(&mut text, &self.of_suite);
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// A registry with `build_info`, as the other processes of the suite have this metric.
fn build_info() -> Registry {
    let builds = Family::<BuildLabels, Gauge>::default();
    let labels = BuildLabels {
        process: "etcd-backup-restore",
        version: env!("CARGO_PKG_VERSION"),
    };
    builds.get_or_create(&labels).set(1);
    let mut registry = Registry::default();
    registry.register("build_info", "1, with name and version of the process", builds);
    registry
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::tests::{delta, full};

    /// A pod of an older version stays until the next restart of the etcd, so the version is worth a series.
    #[test]
    fn the_version_is_a_metric_without_the_prefix() {
        let text = Metrics::default().text();
        let version = env!("CARGO_PKG_VERSION");
        let line = format!("build_info{{process=\"etcd-backup-restore\",version=\"{version}\"}} 1");
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
        assert_eq!(text.matches("# EOF").count(), 1);
    }

    #[test]
    fn names_are_the_known_ones() {
        let metrics = Metrics::default();
        metrics.observe(Kind::Full, true, Duration::from_millis(10));
        metrics.latest(Some(&full(7, 100)), &[delta(8, 9, 101), delta(10, 12, 102)]);
        metrics.required(Kind::Delta, true);
        metrics.collected(Kind::Full);
        let text = metrics.text();
        for line in [
            "etcdbr_snapshot_duration_seconds_count{kind=\"Full\",succeeded=\"true\"} 1",
            "etcdbr_snapshot_latest_revision{kind=\"Full\"} 7",
            "etcdbr_snapshot_latest_revision{kind=\"Incr\"} 12",
            "etcdbr_snapshot_latest_timestamp{kind=\"Full\"} 100",
            "etcdbr_snapshot_required{kind=\"Incr\"} 1",
            "etcdbr_snapshot_gc_total{kind=\"Full\"} 1",
            "etcdbr_snapstore_latest_deltas_total 2",
            "etcdbr_snapstore_latest_deltas_revisions_total 5",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
