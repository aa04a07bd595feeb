//! Durations and retries of tasks in the format of Prometheus.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::observer::TaskEnd;

/// From a write of an object to the copy of a large etcd. Each bucket is a series of each task.
const BUCKETS: [f64; 6] = [1.0, 5.0, 15.0, 60.0, 300.0, 1800.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TaskLabels {
    flow: &'static str,
    task: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct DurationLabels {
    flow: &'static str,
    task: &'static str,
    outcome: &'static str,
}

/// The metrics of all flows of a process. A process has a single value, and gives a clone to each flow
/// ([`crate::Flow::measure`]).
/// - `flow_task_duration_seconds{flow,task,outcome}` is the time from the start of a task to the end of the
///   task, with all attempts and pauses. `outcome` is `succeeded`, `failed` or `timed_out`.
/// - `flow_task_retries_total{flow,task}` counts the attempts after the first attempt of a task.
///
/// A skipped task and a task that is dropped with the flow have no outcome, and are not measured. The names
/// of flows and tasks are literals, so the number of series is bounded: at most 9 series for each task and
/// outcome, and a counter for each task.
#[derive(Clone, Debug)]
pub struct TaskMetrics {
    durations: Family<DurationLabels, Histogram>,
    retries: Family<TaskLabels, Counter>,
}

impl Default for TaskMetrics {
    fn default() -> Self {
        Self {
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            retries: Family::default(),
        }
    }
}

impl TaskMetrics {
    /// Adds the metrics to a registry. Call once in a process.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_with_unit(
            "flow_task_duration",
            "From the start of a task of a flow to its end, with all attempts",
            Unit::Seconds,
            self.durations.clone(),
        );
        registry.register(
            "flow_task_retries",
            "Attempts after the first attempt of a task of a flow",
            self.retries.clone(),
        );
    }

    /// The metrics of a single task.
    pub(crate) fn meter(&self, flow: &'static str, task: &'static str) -> TaskMeter<'_> {
        TaskMeter {
            metrics: self,
            flow,
            task,
        }
    }
}

/// The metrics of a single task.
#[derive(Clone, Copy)]
pub(crate) struct TaskMeter<'m> {
    metrics: &'m TaskMetrics,
    flow: &'static str,
    task: &'static str,
}

impl TaskMeter<'_> {
    /// A further attempt begins.
    pub(crate) fn count_retry(&self) {
        let labels = TaskLabels {
            flow: self.flow,
            task: self.task,
        };
        self.metrics.retries.get_or_create(&labels).inc();
    }

    /// The task has ended.
    pub(crate) fn observe<E>(&self, end: &TaskEnd<'_, E>) {
        let labels = DurationLabels {
            flow: self.flow,
            task: self.task,
            outcome: end.outcome(),
        };
        let durations = self.metrics.durations.get_or_create(&labels);
        durations.observe(end.took.as_secs_f64());
    }
}
