//! Settings of the controller manager, the scheduler and the proxy.

use super::FeatureGates;
use crate::{
    derive::{BTreeMap, Deserialize, JsonSchema, Serialize, skip_serializing_none},
    meta::Duration,
};

/// Settings of the controller manager.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeControllerManagerConfig {
    /// Feature gates of kube-controller-manager. Has no effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: FeatureGates,
    /// Horizontal scaling of pods.
    pub horizontal_pod_autoscaler: Option<HorizontalPodAutoscalerConfig>,
    /// Size of each node's part of the pod network.
    #[serde(rename = "nodeCIDRMaskSize")]
    pub node_cidr_mask_size: Option<i32>,
    /// Length of the mask of a node's range of pod addresses for IPv6. Has no effect.
    #[serde(rename = "nodeCIDRMaskSizeIPv6")]
    pub node_cidr_mask_size_ipv6: Option<i32>,
    /// Time before pods are evicted from a failed node.
    pub pod_eviction_timeout: Option<Duration>,
    /// Time without a report of a node before the node counts as unhealthy.
    pub node_monitor_grace_period: Option<Duration>,
}

/// Horizontal scaling of pods.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HorizontalPodAutoscalerConfig {
    /// Time after the start of a pod in which the CPU usage is ignored.
    pub cpu_initialization_period: Option<Duration>,
    /// Time span of recommendations that are considered before scaling down. Has no effect.
    pub downscale_stabilization: Option<Duration>,
    /// Time after the start of a pod in which changes of readiness count as the first start.
    pub initial_readiness_delay: Option<Duration>,
    /// Time between two evaluations of all HorizontalPodAutoscalers. Has no effect.
    pub sync_period: Option<Duration>,
    /// Smallest relative difference that leads to scaling. Has no effect.
    pub tolerance: Option<f64>,
}

/// Settings of the scheduler.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeSchedulerConfig {
    /// Feature gates of kube-scheduler. Has no effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: FeatureGates,
    /// Highest number of volumes of a node.
    #[serde(rename = "kubeMaxPDVols")]
    pub kube_max_pd_vols: Option<String>,
    /// Profile for the distribution of pods: `balanced` or `bin-packing`.
    pub profile: Option<SchedulingProfile>,
}

/// Profile for the distribution of pods: `balanced` or `bin-packing`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SchedulingProfile {
    /// Evenly.
    Balanced,
    /// A node is filled before the next node is used.
    BinPacking,
}

/// Settings of the proxy.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeProxyConfig {
    /// Feature gates of kube-proxy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub feature_gates: FeatureGates,
    /// Mode of kube-proxy: `IPTables`, `IPVS` or `NFTables`.
    pub mode: Option<ProxyMode>,
    /// Whether kube-proxy runs on the nodes.
    pub enabled: Option<bool>,
}

/// Mode of kube-proxy: `IPTables`, `IPVS` or `NFTables`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProxyMode {
    /// By iptables.
    IPTables,
    /// By the kernel's virtual server.
    IPVS,
    /// By nftables.
    NFTables,
}
