//! Settings of the control plane's programs and of the kubelet, as a Shoot gives them.

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
    /// Scaling of worker pools.
    pub cluster_autoscaler: Option<ClusterAutoscaler>,
    /// Settings of kube-apiserver. Has no effect, a warning says so.
    #[serde(rename = "kubeAPIServer")]
    pub kube_api_server: Option<KubeAPIServerConfig>,
    /// The controller manager.
    pub kube_controller_manager: Option<KubeControllerManagerConfig>,
    /// Settings of kube-scheduler. Has no effect, a warning says so.
    pub kube_scheduler: Option<KubeSchedulerConfig>,
    /// Settings of kube-proxy on the nodes.
    pub kube_proxy: Option<KubeProxyConfig>,
    /// The kubelet on nodes.
    pub kubelet: Option<KubeletConfig>,
    /// The Kubernetes version.
    #[schemars(
        length(min = 1, max = 64),
        regex(pattern = r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?([-+].+)?$")
    )]
    pub version: Option<String>,
    /// Vertical scaling of pods.
    pub vertical_pod_autoscaler: Option<VerticalPodAutoscaler>,
    /// The two etcd clusters.
    pub etcd: Option<EtcdClusters>,
    /// Controllers that another manager than usual runs. A change moves them while both managers run
    /// (KEP-2436): never in both; while it moves, new Nodes may wait some seconds for their range. A cluster
    /// that is made or moved has them where they belong from the start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub controller_leaders: Vec<ControllerLeader>,
}

impl Kubernetes {
    /// The version without `v`, if it names a release (`1.34.4`, `1.34.4-rc.1`) and leaves nothing to choose.
    #[must_use]
    pub fn version_in_full(&self) -> Option<&str> {
        self.version.as_deref().and_then(full_version)
    }
}

/// A version of Kubernetes without `v`, if it names a release and not a part of one (`1.34`).
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
    /// For everything but events.
    pub main: Option<EtcdSettings>,
    /// Settings of the etcd for Events. Has no effect.
    pub events: Option<EtcdSettings>,
}

/// Settings of an etcd cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdSettings {
    /// Its vertical scaling.
    pub autoscaling: Option<ControlPlaneAutoscaling>,
}

/// Vertical scaling of a part of the control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneAutoscaling {
    /// What it gets at least.
    pub min_allowed: BTreeMap<String, Quantity>,
}
