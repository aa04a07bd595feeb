//! The expected time of each step of a flow. The times come from former flows of this process, and before the
//! first flow from measurements in the tests with real clusters. The percentage of an operation follows these
//! times.
//!
//! The steps of moves are also a metric, so that an operator sees the step that makes moves slow. The tasks
//! of all flows are further metrics ([`TaskMetrics`]), also with failures and retries.
//!
//! The times are kept in the memory of the process only. A percentage needs no better estimate after a
//! restart, and a record in the cluster would have to be bounded and cleaned up as well. The memory is
//! bounded, since the names of flows and steps are literals.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use api::meta::LastOperationType as Type;
use flow::TaskMetrics;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, histogram::Histogram},
};
use runtime::process::metrics::Metrics;

use super::unwritable::UnwritableTime;

/// Steps that take longer than [`SHORTEST`], in milliseconds: medians of eight moves between two local seeds
/// (`tests/e2e_move.rs`), and the shortest fence.
const MEASURED: [(&str, u64); 10] = [
    ("Waiting until the former seed cannot act any more", 24_000),
    ("Waiting until main and event etcd report readiness", 7_900),
    ("Waiting until etcd backups are copied", 4_200),
    ("Waiting until Kubernetes API server rolled out", 3_700),
    ("Waiting until Kubernetes scheduler is ready", 2_100),
    ("Waiting until Kubernetes controller manager is ready", 2_000),
    ("Waiting until kube-apiserver has been deleted", 1_900),
    ("Creating ETCD Snapshot", 1_200),
    ("Initializing secrets management", 1_200),
    ("Waiting until the backup entry has been reconciled", 1_100),
];

/// The shortest time that is expected of a step, and the time of all steps that are not measured. Short steps
/// must still raise the percentage: garden-controller-manager treats a percentage without progress as a stuck
/// source.
const SHORTEST: Duration = Duration::from_secs(1);

/// A step that took longer waited for a cause outside of the flow, such as a seed without a node.
const LONGEST: Duration = Duration::from_secs(30 * 60);

/// Labels of the metric. The names of steps are literals, so the number of series is bounded.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StepLabels {
    operation: String,
    step: &'static str,
}

/// Times of steps by flow. Cloning gives a second view of the same times.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    learned: Arc<Mutex<HashMap<(&'static str, &'static str), Duration>>>,
    durations: Family<StepLabels, Histogram>,
    tasks: TaskMetrics,
    unwritable: UnwritableTime,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            learned: Arc::default(),
            // From a write of an object to the copy of a large etcd.
            durations: Family::new_with_constructor(|| Histogram::new([1.0, 5.0, 15.0, 60.0, 300.0, 1800.0])),
            tasks: TaskMetrics::default(),
            unwritable: UnwritableTime::default(),
        }
    }
}

impl Pace {
    /// The times of a process without former flows, and the metrics of these times. Call once in a process.
    pub(crate) fn registered(metrics: &Metrics) -> Self {
        let pace = Self::default();
        metrics.register(|registry| {
            registry.register(
                "shoot_move_step_duration_seconds",
                "Seconds of each step of migrations and restorations that has succeeded",
                pace.durations.clone(),
            );
            pace.tasks.register(registry);
            pace.unwritable.register(registry);
        });
        pace
    }

    /// The metrics of the tasks of all flows.
    pub(crate) fn tasks(&self) -> &TaskMetrics {
        &self.tasks
    }

    /// The metric of the time in which a moved shoot takes no write.
    pub(super) fn unwritable(&self) -> &UnwritableTime {
        &self.unwritable
    }

    /// Drops the entry of a shoot that is gone, or that the seed leaves.
    pub(crate) fn forget(&self, uid: &str) {
        self.unwritable.forget(uid);
    }

    /// Adds a step that has succeeded to the metric.
    pub(crate) fn observe(&self, operation: Type, step: &'static str, took: Duration) {
        let labels = StepLabels {
            operation: operation.to_string(),
            step,
        };
        self.durations.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// How long a step of a flow is expected to take.
    pub(crate) fn expected(&self, flow: &'static str, step: &'static str) -> Duration {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let learned = learned.get(&(flow, step)).copied();
        let expected = learned.unwrap_or_else(|| {
            let measured = MEASURED.iter().find(|(name, _)| *name == step);
            measured.map_or(SHORTEST, |(_, milliseconds)| Duration::from_millis(*milliseconds))
        });
        expected.max(SHORTEST)
    }

    /// Takes over how long a step took that has succeeded. The last flow counts for half, so that a single
    /// slow flow fades.
    pub(crate) fn learn(&self, flow: &'static str, step: &'static str, took: Duration) {
        let mean = (self.expected(flow, step) + took.min(LONGEST)) / 2;
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.insert((flow, step), mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COPY: &str = "Waiting until etcd backups are copied";

    #[test]
    fn a_step_is_expected_to_take_what_it_took_in_former_flows_of_the_same_kind() {
        let pace = Pace::default();
        assert_eq!(pace.expected("restore", COPY), Duration::from_millis(4_200));
        assert_eq!(pace.expected("restore", "anything else"), SHORTEST);
        for _ in 0..8 {
            pace.learn("restore", COPY, Duration::from_secs(105));
        }
        let learned = pace.expected("restore", COPY);
        assert!(
            learned > Duration::from_secs(100) && learned <= Duration::from_secs(105),
            "{learned:?}"
        );
        assert_eq!(pace.expected("reconcile", COPY), Duration::from_millis(4_200));
        pace.learn("restore", COPY, Duration::from_secs(1_000_000));
        assert!(pace.expected("restore", COPY) < LONGEST);
    }

    #[tokio::test(start_paused = true)]
    async fn the_tasks_of_flows_are_metrics() {
        let metrics = Metrics::default();
        let pace = Pace::registered(&metrics);
        let mut graph = flow::Graph::<String>::new("f");
        graph.add(flow::Task::new(COPY, || async { Ok(()) }));
        assert!(graph.compile().measure(pace.tasks()).run(|_| ()).await.is_ok());
        let shown = metrics.encode();
        let line =
            format!("flow_task_duration_seconds_count{{flow=\"f\",task=\"{COPY}\",outcome=\"succeeded\"}} 1");
        assert!(shown.contains(&line), "{line} is not in\n{shown}");
    }

    #[test]
    fn the_steps_of_moves_are_a_metric() {
        let metrics = Metrics::default();
        let pace = Pace::registered(&metrics);
        pace.observe(Type::Restore, COPY, Duration::from_secs(20));
        let shown = metrics.encode();
        let line = format!(
            "shoot_move_step_duration_seconds_bucket{{le=\"60.0\",operation=\"Restore\",step=\"{COPY}\"}} 1"
        );
        assert!(shown.contains(&line), "{line} is not in\n{shown}");
    }
}
