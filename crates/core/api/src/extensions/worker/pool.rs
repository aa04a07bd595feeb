//! A pool of an extension Worker.

use k8s_openapi::{
    api::core::v1::{SecretKeySelector, Taint},
    apimachinery::pkg::{api::resource::Quantity, util::intstr::IntOrString},
};

use crate::{
    derive::{BTreeMap, Deserialize, JsonSchema, PackedExtension, Serialize, skip_serializing_none},
    gardencore::shoot::{
        DataVolume, KubeletConfig, MachineControllerManagerSettings, MachineUpdateStrategy, Volume,
    },
    meta::Duration,
};

/// A wanted pool.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerPool {
    /// Machine type of the pool, as the CloudProfile names the type.
    pub machine_type: String,
    /// Highest number of machines in the pool.
    pub maximum: i32,
    /// Number or percentage of additional machines during an update.
    pub max_surge: IntOrString,
    /// Number or percentage of machines that may be missing during an update.
    pub max_unavailable: IntOrString,
    /// Annotations of the pool's nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels of the pool's nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Taints of the pool's nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Image of the pool's machines. Default: an image without name and version.
    #[serde(default)]
    pub machine_image: WorkerMachineImage,
    /// Lowest number of machines in the pool.
    pub minimum: i32,
    /// Name of the pool, unique in the shoot.
    pub name: String,
    /// Name of the Secret with the access for the agent on the pool's nodes.
    pub node_agent_secret_name: Option<String>,
    /// The provider's own configuration.
    pub provider_config: Option<PackedExtension>,
    /// The Secret with the user data of the pool's machines.
    pub user_data_secret_ref: SecretKeySelector,
    /// Root disk of the pool's machines.
    pub volume: Option<Volume>,
    /// Further disks of the pool's machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_volumes: Vec<DataVolume>,
    /// Name of the disk with the state of the kubelet.
    pub kubelet_data_volume_name: Option<String>,
    /// Zones over which the pool is spread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
    /// Settings of machine-controller-manager for the pool.
    pub machine_controller_manager: Option<MachineControllerManagerSettings>,
    /// Version of the kubelet. A new minor version replaces the machines.
    pub kubernetes_version: Option<String>,
    /// Settings of the kubelet on the pool's machines.
    pub kubelet_config: Option<KubeletConfig>,
    /// Resources of a node of the pool, for scaling from zero machines.
    pub node_template: Option<NodeTemplate>,
    /// CPU architecture of the pool's machines.
    pub architecture: Option<String>,
    /// Settings of the cluster autoscaler for the pool.
    pub cluster_autoscaler: Option<WorkerClusterAutoscaler>,
    /// Priority of the pool in scaling; a higher value is scaled first.
    pub priority: Option<i32>,
    /// Strategy for updates of the pool's machines.
    pub update_strategy: Option<MachineUpdateStrategy>,
}

/// An image of machines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerMachineImage {
    /// Name of the machine image in the CloudProfile.
    pub name: String,
    /// Version of the machine image.
    pub version: String,
}

/// Resources of a node of a pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplate {
    /// Resources of a node of the pool, by name.
    pub capacity: BTreeMap<String, Quantity>,
    /// Further resources of a node, unknown to the machine type.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub virtual_capacity: BTreeMap<String, Quantity>,
}

/// How a pool is scaled. Thresholds are text here, unlike in a Shoot.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerClusterAutoscaler {
    /// Utilization below which a node counts as idle.
    pub scale_down_utilization_threshold: Option<String>,
    /// Utilization of accelerators below which a node counts as idle.
    pub scale_down_gpu_utilization_threshold: Option<String>,
    /// Time for which a node must be idle before removal.
    pub scale_down_unneeded_time: Option<Duration>,
    /// Time for which a node that is not ready must be idle before removal.
    pub scale_down_unready_time: Option<Duration>,
    /// Longest time until a new node joins. Has no effect: no autoscaler runs.
    pub max_node_provision_time: Option<Duration>,
}
