//! One pool of an extension Worker.

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
    /// Type of its machines.
    pub machine_type: String,
    /// Highest number of machines in the pool.
    pub maximum: i32,
    /// How many more there may be during an update.
    pub max_surge: IntOrString,
    /// How many fewer there may be during an update.
    pub max_unavailable: IntOrString,
    /// Annotations of its nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels of its nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Taints of its nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Image of its machines.
    #[serde(default)]
    pub machine_image: WorkerMachineImage,
    /// Lowest number of machines in the pool.
    pub minimum: i32,
    /// Name of the pool, unique in the shoot.
    pub name: String,
    /// The Secret with the access of the agent on its nodes.
    pub node_agent_secret_name: Option<String>,
    /// The provider's own configuration.
    pub provider_config: Option<PackedExtension>,
    /// The Secret with what machines run at first.
    pub user_data_secret_ref: SecretKeySelector,
    /// Root disk of the pool's machines.
    pub volume: Option<Volume>,
    /// Further disks of the pool's machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_volumes: Vec<DataVolume>,
    /// The disk that the kubelet keeps its state on.
    pub kubelet_data_volume_name: Option<String>,
    /// Zones over which it is spread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<String>,
    /// How its machines are looked after.
    pub machine_controller_manager: Option<MachineControllerManagerSettings>,
    /// The kubelet's version.
    pub kubernetes_version: Option<String>,
    /// Settings of the kubelet on the pool's machines.
    pub kubelet_config: Option<KubeletConfig>,
    /// What a node of it is like, for scaling from none.
    pub node_template: Option<NodeTemplate>,
    /// Kind of its machines' processors.
    pub architecture: Option<String>,
    /// Settings of the cluster autoscaler for the pool.
    pub cluster_autoscaler: Option<WorkerClusterAutoscaler>,
    /// How much sooner than others it is scaled.
    pub priority: Option<i32>,
    /// How its machines are updated.
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

/// What a node of a pool is like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeTemplate {
    /// Resources of a node of the pool, by name.
    pub capacity: BTreeMap<String, Quantity>,
    /// Resources it will have that no machine tells of.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub virtual_capacity: BTreeMap<String, Quantity>,
}

/// How a pool is scaled. Thresholds are text here, unlike in a Shoot.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerClusterAutoscaler {
    /// Below what use a node counts as idle.
    pub scale_down_utilization_threshold: Option<String>,
    /// Below what use of accelerators a node counts as idle.
    pub scale_down_gpu_utilization_threshold: Option<String>,
    /// How long a node must be idle before it goes.
    pub scale_down_unneeded_time: Option<Duration>,
    /// How long a node that is not ready must be idle before it goes.
    pub scale_down_unready_time: Option<Duration>,
    /// How long a node may take to come.
    pub max_node_provision_time: Option<Duration>,
}
