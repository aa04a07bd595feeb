//! Settings of the kubelet, for shoots and extension Workers.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use super::FeatureGates;
use crate::{
    derive::{BTreeMap, Deserialize, JsonSchema, Serialize, skip_serializing_none},
    meta::Duration,
};

/// Settings of the kubelet.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeletConfig {
    /// Feature gates of the kubelet.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: FeatureGates,
    /// Whether the CPU limits of containers are enforced.
    #[serde(rename = "cpuCFSQuota")]
    pub cpu_cfs_quota: Option<bool>,
    /// Policy for the assignment of CPUs to pods: `none` or `static`.
    pub cpu_manager_policy: Option<String>,
    /// Thresholds below which pods are evicted at once.
    pub eviction_hard: Option<KubeletEviction>,
    /// Longest time in seconds for pods to terminate in an eviction by a soft threshold.
    pub eviction_max_pod_grace_period: Option<i32>,
    /// Resources that an eviction frees at least.
    pub eviction_minimum_reclaim: Option<KubeletEvictionMinimumReclaim>,
    /// Time for which the kubelet still reports pressure after the end of the pressure.
    pub eviction_pressure_transition_period: Option<Duration>,
    /// Thresholds below which pods are evicted after `evictionSoftGracePeriod`.
    pub eviction_soft: Option<KubeletEviction>,
    /// Time below a soft eviction threshold before pods are evicted.
    pub eviction_soft_grace_period: Option<KubeletEvictionSoftGracePeriod>,
    /// Highest number of pods of a node.
    pub max_pods: Option<i32>,
    /// Highest number of processes of a pod.
    pub pod_pids_limit: Option<i64>,
    /// Whether the kubelet refuses to start on a node with swap.
    pub fail_swap_on: Option<bool>,
    /// Resources that are reserved for the processes of Kubernetes.
    pub kube_reserved: Option<KubeletReserved>,
    /// Resources that are reserved for the operating system.
    pub system_reserved: Option<KubeletReserved>,
    /// Disk usage in percent at which the deletion of unused images begins.
    #[serde(rename = "imageGCHighThresholdPercent")]
    pub image_gc_high_threshold_percent: Option<i32>,
    /// Disk usage in percent at which the deletion of images stops.
    #[serde(rename = "imageGCLowThresholdPercent")]
    pub image_gc_low_threshold_percent: Option<i32>,
    /// Whether images are pulled one at a time.
    pub serialize_image_pulls: Option<bool>,
    /// Highest number of image pulls per second.
    #[serde(rename = "registryPullQPS")]
    pub registry_pull_qps: Option<i32>,
    /// Highest number of image pulls in a burst, above `registryPullQPS`.
    pub registry_burst: Option<i32>,
    /// Whether pods get the runtime's filter of system calls by default.
    pub seccomp_default: Option<bool>,
    /// Largest size of a log file of a container.
    pub container_log_max_size: Option<Quantity>,
    /// Highest number of log files of a container.
    pub container_log_max_files: Option<i32>,
    /// Whether the kubelet refuses to start with different kernel settings.
    pub protect_kernel_defaults: Option<bool>,
    /// Time without traffic after which a streaming connection is closed.
    pub streaming_connection_idle_timeout: Option<Duration>,
    /// Settings for the use of swap by pods.
    pub memory_swap: Option<MemorySwapConfiguration>,
    /// Highest number of images that are pulled at the same time.
    pub max_parallel_image_pulls: Option<i32>,
    /// Lowest age at which an unused image may be deleted.
    #[serde(rename = "imageMinimumGCAge")]
    pub image_minimum_gc_age: Option<Duration>,
    /// Age at which an unused image is deleted.
    #[serde(rename = "imageMaximumGCAge")]
    pub image_maximum_gc_age: Option<Duration>,
    /// Whether only the process that ran out of memory is killed, instead of all processes of the container.
    #[serde(rename = "singleProcessOOMKill")]
    pub single_process_oom_kill: Option<bool>,
    /// Whether a pod must be allowed to pull an image that is there already.
    pub image_pull_credentials_verification_policy: Option<String>,
    /// Images that are exempt from `imagePullCredentialsVerificationPolicy`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preloaded_images_verification_allowlist: Vec<String>,
}

/// Thresholds, as quantities or percentages.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeletEviction {
    /// Threshold of free memory, as a quantity or in percent.
    pub memory_available: Option<String>,
    /// Threshold of free space on the file system of images, as a quantity or in percent.
    #[serde(rename = "imageFSAvailable")]
    pub image_fs_available: Option<String>,
    /// Threshold of free inodes on the file system of images, as a number or in percent.
    #[serde(rename = "imageFSInodesFree")]
    pub image_fs_inodes_free: Option<String>,
    /// Threshold of free space on the root file system, as a quantity or in percent.
    #[serde(rename = "nodeFSAvailable")]
    pub node_fs_available: Option<String>,
    /// Threshold of free inodes on the root file system, as a number or in percent.
    #[serde(rename = "nodeFSInodesFree")]
    pub node_fs_inodes_free: Option<String>,
}

/// How much is freed at least.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeletEvictionMinimumReclaim {
    /// Memory that an eviction frees at least.
    pub memory_available: Option<Quantity>,
    /// Space that an eviction frees at least on the file system of images.
    #[serde(rename = "imageFSAvailable")]
    pub image_fs_available: Option<Quantity>,
    /// Inodes that an eviction frees at least on the file system of images.
    #[serde(rename = "imageFSInodesFree")]
    pub image_fs_inodes_free: Option<Quantity>,
    /// Space that an eviction frees at least on the root file system.
    #[serde(rename = "nodeFSAvailable")]
    pub node_fs_available: Option<Quantity>,
    /// Inodes that an eviction frees at least on the root file system.
    #[serde(rename = "nodeFSInodesFree")]
    pub node_fs_inodes_free: Option<Quantity>,
}

/// How long a threshold must hold.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeletEvictionSoftGracePeriod {
    /// Time below the threshold of free memory before pods are evicted.
    pub memory_available: Option<Duration>,
    /// Time below the threshold of free space for images before pods are evicted.
    #[serde(rename = "imageFSAvailable")]
    pub image_fs_available: Option<Duration>,
    /// Time below the threshold of free inodes for images before pods are evicted.
    #[serde(rename = "imageFSInodesFree")]
    pub image_fs_inodes_free: Option<Duration>,
    /// Time below the threshold of free space before pods are evicted.
    #[serde(rename = "nodeFSAvailable")]
    pub node_fs_available: Option<Duration>,
    /// Time below the threshold of free inodes before pods are evicted.
    #[serde(rename = "nodeFSInodesFree")]
    pub node_fs_inodes_free: Option<Duration>,
}

/// Resources that pods do not get.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeletReserved {
    /// CPUs that pods do not get.
    pub cpu: Option<Quantity>,
    /// Memory that pods do not get.
    pub memory: Option<Quantity>,
    /// Ephemeral storage that pods do not get.
    pub ephemeral_storage: Option<Quantity>,
    /// Number of process ids that pods do not get.
    pub pid: Option<Quantity>,
}

/// Use of swap by pods.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemorySwapConfiguration {
    /// `NoSwap`, `LimitedSwap` or `UnlimitedSwap`.
    pub swap_behavior: Option<String>,
}
