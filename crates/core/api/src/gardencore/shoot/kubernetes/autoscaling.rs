//! Settings of the autoscalers of worker pools and pods.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::FeatureGates;
use crate::{
    derive::{BTreeMap, Deserialize, JsonSchema, Serialize, skip_serializing_none},
    meta::Duration,
};

/// Scaling of worker pools.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAutoscaler {
    /// Time after the addition of a node before a node is removed.
    pub scale_down_delay_after_add: Option<Duration>,
    /// Time after the removal of a node before a further node is removed.
    pub scale_down_delay_after_delete: Option<Duration>,
    /// Time after a failed removal of a node before a node is removed.
    pub scale_down_delay_after_failure: Option<Duration>,
    /// Time for which a node must be idle before removal. Has no effect.
    pub scale_down_unneeded_time: Option<Duration>,
    /// Utilization below which a node counts as idle. Has no effect.
    pub scale_down_utilization_threshold: Option<f64>,
    /// Time between two evaluations of the autoscaler. Has no effect.
    pub scan_interval: Option<Duration>,
    /// Strategies for the choice of the pool that grows, separated by commas. Has no effect.
    pub expander: Option<String>,
    /// Longest time until a new node joins.
    pub max_node_provision_time: Option<Duration>,
    /// Longest time in seconds for pods to terminate on a node to be removed.
    pub max_graceful_termination_seconds: Option<i32>,
    /// Taints that the autoscaler ignores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore_taints: Vec<String>,
    /// Age of a pod before the autoscaler adds nodes for the pod.
    pub new_pod_scale_up_delay: Option<Duration>,
    /// Highest number of empty nodes that are removed at the same time.
    pub max_empty_bulk_delete: Option<i32>,
    /// Whether pods of DaemonSets count as utilization of a node.
    pub ignore_daemonsets_utilization: Option<bool>,
    /// Verbosity of the autoscaler's log. Has no effect.
    pub verbosity: Option<i32>,
    /// Taints of nodes that are still starting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub startup_taints: Vec<String>,
    /// Taints of nodes that are not for new pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status_taints: Vec<String>,
    /// Highest number of nodes that are removed at the same time.
    pub max_scale_down_parallelism: Option<i32>,
    /// Highest number of nodes that are drained at the same time.
    pub max_drain_parallelism: Option<i32>,
    /// Time without scaling of a pool after the first failure. Has no effect.
    pub initial_node_group_backoff_duration: Option<Duration>,
    /// Longest pause of a pool after failures.
    pub max_node_group_backoff_duration: Option<Duration>,
    /// When a pool's failures are forgotten.
    pub node_group_backoff_reset_timeout: Option<Duration>,
    /// Whether there are separate metrics for each pool. Has no effect.
    pub emit_per_node_group_metrics: Option<bool>,
}

/// Vertical scaling of pods.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VerticalPodAutoscaler {
    /// Whether pods are scaled vertically.
    pub enabled: bool,
    /// A container that ran out of memory sooner than this is replaced.
    #[serde(rename = "evictAfterOOMThreshold")]
    pub evict_after_oom_threshold: Option<Duration>,
    /// Highest number of evictions in a burst.
    pub eviction_rate_burst: Option<i32>,
    /// Highest number of evictions per second.
    pub eviction_rate_limit: Option<f64>,
    /// Fraction of the pods of a set that may be replaced at a time. Has no effect.
    pub eviction_tolerance: Option<f64>,
    /// Fraction that is added to the measured usage. Has no effect.
    pub recommendation_margin_fraction: Option<f64>,
    /// Time between two checks for pods to replace.
    pub updater_interval: Option<Duration>,
    /// Time between two updates of the recommendations.
    pub recommender_interval: Option<Duration>,
    /// Percentile of use of processors that is aimed at.
    #[serde(rename = "targetCPUPercentile")]
    pub target_cpu_percentile: Option<f64>,
    /// Percentile that is the lower bound.
    #[serde(rename = "recommendationLowerBoundCPUPercentile")]
    pub recommendation_lower_bound_cpu_percentile: Option<f64>,
    /// Percentile that is the upper bound.
    #[serde(rename = "recommendationUpperBoundCPUPercentile")]
    pub recommendation_upper_bound_cpu_percentile: Option<f64>,
    /// Percentile of use of memory that is aimed at.
    pub target_memory_percentile: Option<f64>,
    /// Percentile that is the lower bound.
    pub recommendation_lower_bound_memory_percentile: Option<f64>,
    /// Percentile that is the upper bound.
    pub recommendation_upper_bound_memory_percentile: Option<f64>,
    /// Half-life of the weight of past CPU usage. Has no effect.
    pub cpu_histogram_decay_half_life: Option<Duration>,
    /// Half-life of the weight of past memory usage. Has no effect.
    pub memory_histogram_decay_half_life: Option<Duration>,
    /// Length of an interval for the peak of memory usage. Has no effect.
    pub memory_aggregation_interval: Option<Duration>,
    /// Number of intervals of `memoryAggregationInterval` that are considered.
    pub memory_aggregation_interval_count: Option<i64>,
    /// Feature gates of the autoscaler. Has no effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: FeatureGates,
    /// Highest resources that the autoscaler recommends. Has no effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub max_allowed: BTreeMap<String, Quantity>,
    /// Number of workers that write recommendations.
    pub recommender_update_worker_count: Option<i64>,
}
