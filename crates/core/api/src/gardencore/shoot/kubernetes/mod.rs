//! Settings of the control plane's processes and of the kubelet in a Shoot.

mod api_server;
mod autoscaling;
mod controller_leaders;
mod controllers;
mod kubelet;

pub use api_server::*;
pub use autoscaling::*;
pub use controller_leaders::*;
pub use controllers::*;
pub use kubelet::*;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::derive::{BTreeMap, Deserialize, JsonSchema, Serialize, skip_serializing_none};

/// Feature gates by name.
pub type FeatureGates = BTreeMap<String, bool>;

/// The control plane's programs.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Kubernetes {
    /// Settings of the cluster autoscaler.
    pub cluster_autoscaler: Option<ClusterAutoscaler>,
    /// Settings of kube-apiserver. Has no effect, a warning says so.
    #[serde(rename = "kubeAPIServer")]
    pub kube_api_server: Option<KubeAPIServerConfig>,
    /// Settings of kube-controller-manager.
    pub kube_controller_manager: Option<KubeControllerManagerConfig>,
    /// Settings of kube-scheduler. Has no effect, a warning says so.
    pub kube_scheduler: Option<KubeSchedulerConfig>,
    /// Settings of kube-proxy on the nodes.
    pub kube_proxy: Option<KubeProxyConfig>,
    /// Settings of the kubelet on all nodes.
    pub kubelet: Option<KubeletConfig>,
    /// Kubernetes version of the control plane, such as `1.34.4`.
    #[schemars(
        length(min = 1, max = 64),
        regex(pattern = r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?([-+][ -~]+)?$")
    )]
    pub version: Option<String>,
    /// Settings of the vertical pod autoscaler.
    pub vertical_pod_autoscaler: Option<VerticalPodAutoscaler>,
    /// Settings of the two etcd clusters of the control plane.
    pub etcd: Option<EtcdClusters>,
    /// Controllers that do not run in the default manager. A change moves these controllers while both
    /// managers run (KEP-2436), and no controller ever runs in both managers. During the move, new Nodes may
    /// wait some seconds for a range of pod addresses. In a new or moved cluster, the controllers start in
    /// the right manager.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub controller_leaders: Vec<ControllerLeader>,
}

impl Kubernetes {
    /// The version without `v`, if the version names a release (`1.34.4`, `1.34.4-rc.1`) in full.
    #[must_use]
    pub fn version_in_full(&self) -> Option<&str> {
        self.version.as_deref().and_then(full_version)
    }
}

/// A version of Kubernetes without `v`, if the version names a release in full, unlike `1.34`.
#[must_use]
pub fn full_version(version: &str) -> Option<&str> {
    let version = version.trim_start_matches('v');
    let release = version.split(['-', '+']).next().unwrap_or_default();
    (release.split('.').count() == 3).then_some(version)
}

/// Settings of the two etcd clusters.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdClusters {
    /// Settings of the etcd for all objects except Events. Has no effect.
    pub main: Option<EtcdSettings>,
    /// Settings of the etcd for Events. Has no effect.
    pub events: Option<EtcdSettings>,
}

/// Settings of an etcd cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdSettings {
    /// Vertical scaling of the etcd cluster. Has no effect.
    pub autoscaling: Option<ControlPlaneAutoscaling>,
}

/// Vertical scaling of a part of the control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneAutoscaling {
    /// Lowest resources that the autoscaler recommends. Has no effect.
    pub min_allowed: BTreeMap<String, Quantity>,
}
