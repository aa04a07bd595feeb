//! Seconds in which a planned move let the API of a shoot take no write, as a metric of the destination.
//!
//! The time begins with the final snapshot and ends with the rollout of kube-apiserver. A client of the edge
//! waits some seconds longer: kube-apiserver stops before the final snapshot, and DNS servers and the edge
//! may need a moment after the rollout. The name of the snapshot has the time by the clock of the source, so
//! the difference of both clocks is part of the value.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use api::gardencore::Shoot;
use jiff::Timestamp;
use kube::ResourceExt;
use prometheus_client::{metrics::histogram::Histogram, registry::Registry};

/// The step after which clients can write again.
pub(super) const WRITABLE_AFTER: &str = "Waiting until Kubernetes API server rolled out";

/// The end of the former ownership epoch of a shoot, as far as the metric needs the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FormerEpochEnd {
    uid: String,
    epoch: i64,
    sealed: Timestamp,
}

impl FormerEpochEnd {
    /// Of the epoch before the present epoch of the Shoot. `None` after a takeover, which has no final
    /// snapshot.
    pub(super) fn read(shoot: &Shoot) -> Option<Self> {
        let ownership = shoot.status.as_ref()?.ownership.as_ref()?;
        let sealed = ownership.sealed.as_ref()?;
        if sealed.epoch + 1 != ownership.epoch {
            return None;
        }
        Some(Self {
            uid: shoot.uid()?,
            epoch: ownership.epoch,
            sealed: snapshot_time(&sealed.snapshot)?,
        })
    }
}

/// The time in the name of a snapshot: `{Full|Incr}-<first revision>-<last revision>-<unix time>[.ending]`.
fn snapshot_time(name: &str) -> Option<Timestamp> {
    let rest = name.splitn(4, '-').nth(3)?;
    let seconds = rest.split('.').next()?;
    Timestamp::from_second(seconds.parse().ok()?).ok()
}

/// The metric. Cloning gives a second view of the same metric.
#[derive(Clone, Debug)]
pub(super) struct UnwritableTime {
    seconds: Histogram,
    /// The last observed epoch by uid of the Shoot: an attempt may repeat the step. An entry for each shoot
    /// that moved to this seed and is there.
    observed: Arc<Mutex<HashMap<String, i64>>>,
}

impl Default for UnwritableTime {
    fn default() -> Self {
        Self {
            // From a move of a small etcd to a move that waited for a person.
            seconds: Histogram::new([10.0, 20.0, 30.0, 45.0, 60.0, 120.0, 300.0, 900.0, 3600.0]),
            observed: Arc::default(),
        }
    }
}

impl UnwritableTime {
    /// Adds the metric to the registry of the process.
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "shoot_move_unwritable_seconds",
            "Seconds from the final snapshot in the former seed to the rollout of kube-apiserver in this seed",
            self.seconds.clone(),
        );
    }

    /// Clients can write again since `now`. Only the first report in an epoch counts.
    pub(super) fn observe(&self, end: &FormerEpochEnd, now: Timestamp) {
        let mut observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        if observed.insert(end.uid.clone(), end.epoch) == Some(end.epoch) {
            return;
        }
        let seconds = now.duration_since(end.sealed).as_secs_f64();
        // A clock of the source that is far ahead gives no value.
        if seconds >= 0.0 {
            self.seconds.observe(seconds);
        }
    }

    /// Drops the entry of a shoot that is gone, or that the seed leaves.
    pub(super) fn forget(&self, uid: &str) {
        let mut observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        observed.remove(uid);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use parts::{Deploy, KubeApiserver};
    use runtime::process::metrics::Metrics;
    use serde_json::{Value, json};

    use super::*;

    fn read(ownership: &Value) -> Option<FormerEpochEnd> {
        let shoot = json!({"metadata": {"name": "web", "uid": "u"},
            "spec": {"kubernetes": {}, "provider": {"type": "local"}, "region": "local"},
            "status": {"seedName": "b", "ownership": ownership}});
        FormerEpochEnd::read(&serde_json::from_value(shoot).unwrap())
    }

    fn sealed(epoch: i64, snapshot: &str) -> Value {
        json!({"epoch": epoch, "revision": 54, "snapshot": snapshot, "sha256": "a".repeat(64)})
    }

    #[test]
    fn the_end_of_the_former_epoch_has_the_time_of_the_final_snapshot() {
        for ending in ["", ".final", ".gz.final"] {
            let snapshot = format!("Full-00000000-00000054-1767225600{ending}");
            let end = read(&json!({"epoch": 2, "sealed": sealed(1, &snapshot)})).unwrap();
            assert_eq!(end.sealed, "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap());
        }
    }

    #[test]
    fn a_takeover_and_an_unknown_name_have_no_end() {
        let snapshot = "Full-00000000-00000054-1767225600.final";
        // The former epoch was taken over. The record is of an earlier hand-over.
        assert_eq!(read(&json!({"epoch": 3, "sealed": sealed(1, snapshot)})), None);
        assert_eq!(read(&json!({"epoch": 2})), None);
        for name in ["Full-00000000-00000054", "Full-0-54-soon.gz", "final"] {
            assert_eq!(read(&json!({"epoch": 2, "sealed": sealed(1, name)})), None);
        }
    }

    #[test]
    fn the_step_belongs_to_the_flow() {
        assert!(<KubeApiserver as Deploy>::TASKS.contains(&WRITABLE_AFTER));
    }

    #[test]
    fn a_move_counts_once() {
        let (metrics, unwritable) = (Metrics::default(), UnwritableTime::default());
        metrics.register(|registry| unwritable.register(registry));
        let snapshot = "Full-00000000-00000054-1767225600.final";
        let end = |epoch: i64| read(&json!({"epoch": epoch + 1, "sealed": sealed(epoch, snapshot)})).unwrap();
        for now in ["2026-01-01T00:00:25Z", "2026-01-01T00:09:00Z"] {
            unwritable.observe(&end(1), now.parse().unwrap());
        }
        let text = metrics.encode();
        assert!(text.contains("shoot_move_unwritable_seconds_sum 25.0"), "{text}");
        unwritable.observe(&end(2), "2026-01-01T00:00:20Z".parse().unwrap());
        // The clock of the source is ahead.
        unwritable.observe(&end(3), "2025-12-31T23:59:00Z".parse().unwrap());
        let text = metrics.encode();
        assert!(text.contains("shoot_move_unwritable_seconds_count 2"), "{text}");
        assert_eq!(unwritable.observed.lock().unwrap().len(), 1);
        unwritable.forget("u");
        assert!(unwritable.observed.lock().unwrap().is_empty());
    }
}
