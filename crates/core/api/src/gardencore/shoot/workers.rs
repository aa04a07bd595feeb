//! Worker pools of a Shoot.

use k8s_openapi::{api::core::v1::Taint, apimachinery::pkg::util::intstr::IntOrString};

use super::KubeletConfig;
use crate::{
    derive::{
        BTreeMap, Deserialize, JsonSchema, KubeSchema, PRINTABLE, PackedExtension, Serialize,
        skip_serializing_none,
    },
    gardencore::seed::SeedBackup,
    meta::Duration,
};

/// A pool of nodes.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("self.minimum <= self.maximum", "minimum must not be greater than maximum"))]
pub struct Worker {
    /// Annotations of the pool's nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Certificates that the pool's machines are to trust. Has no effect.
    #[serde(rename = "caBundle")]
    pub ca_bundle: Option<String>,
    /// Container runtime of the pool's nodes: containerd.
    // A different name would replace all machines of the pool without any other change.
    #[x_kube(validation = ("self.name == 'containerd'", "what runs containers is containerd: no other name has an effect"))]
    pub cri: Option<CRI>,
    /// Kubernetes version and kubelet of the pool's nodes.
    pub kubernetes: Option<WorkerKubernetes>,
    /// Labels of the pool's nodes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Name of the pool, unique in the Shoot. Names of the pool's machines begin with the name.
    #[schemars(length(min = 1, max = 15), regex(pattern = PRINTABLE))]
    pub name: String,
    /// Type, image and architecture of the pool's machines.
    pub machine: Machine,
    /// Highest number of machines in the pool.
    #[schemars(range(min = 0, max = 5000))]
    pub maximum: i32,
    /// Lowest number of machines in the pool. As no autoscaler runs, the pool has this number.
    #[schemars(range(min = 0, max = 5000))]
    pub minimum: i32,
    /// Number or percentage of additional machines during an update. Default: 1.
    pub max_surge: Option<IntOrString>,
    /// Number or percentage of machines that may be missing during an update. Default: 0.
    pub max_unavailable: Option<IntOrString>,
    /// The provider's own configuration.
    pub provider_config: Option<PackedExtension>,
    /// Taints of the pool's nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
    /// Root disk of the pool's machines. Absent for the default of the machine type.
    pub volume: Option<Volume>,
    /// Further disks of the pool's machines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_volumes: Vec<DataVolume>,
    /// Name of the disk with the state of the kubelet. Has no effect: the root disk is used.
    pub kubelet_data_volume_name: Option<String>,
    /// Zones of the region over which the machines of the pool are spread evenly, each named once, as the
    /// account calls the zone. 32 at most. Without a zone the provider chooses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 63), regex(pattern = PRINTABLE)))]
    // Each zone is a MachineDeployment. A rule of CEL, unlike a list of type `set`, spares Shoots from before
    // this rule.
    #[x_kube(validation = (
        "self.all(zone, self.exists_one(other, other == zone))",
        "a worker pool names each zone once: remove the second entry, or set minimum and maximum for more machines in the zone"
    ))]
    pub zones: Vec<String>,
    /// Settings of system components on the pool's nodes.
    pub system_components: Option<WorkerSystemComponents>,
    /// Settings of machine-controller-manager for the pool.
    pub machine_controller_manager: Option<MachineControllerManagerSettings>,
    /// Kernel parameters of the nodes, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sysctls: BTreeMap<String, String>,
    /// Settings of the cluster autoscaler for the pool. Has no effect.
    pub cluster_autoscaler: Option<ClusterAutoscalerOptions>,
    /// Priority of the pool in scaling; a higher value is scaled first. Has no effect.
    pub priority: Option<i32>,
    /// Strategy for updates of the pool's machines.
    pub update_strategy: Option<MachineUpdateStrategy>,
    /// Runs the control plane of the cluster on the pool's machines. Has no effect.
    pub control_plane: Option<WorkerControlPlane>,
}

/// Strategy for updates of the machines of a pool. Default: `AutoRollingUpdate`; updates in place are
/// refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MachineUpdateStrategy {
    /// By new machines.
    AutoRollingUpdate,
    /// In place.
    AutoInPlaceUpdate,
    /// In place, when the user says so.
    ManualInPlaceUpdate,
}

/// Container runtime of nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CRI {
    /// Name of the container runtime, e.g. `containerd`.
    pub name: String,
    /// Further runtimes for containers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub container_runtimes: Vec<ContainerRuntime>,
}

/// A further way to run containers.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContainerRuntime {
    /// Type of the container runtime, as offered by a ControllerRegistration.
    #[schemars(regex(pattern = PRINTABLE))]
    pub type_: String,
    /// The container runtime's own configuration.
    pub provider_config: Option<PackedExtension>,
}

/// Kubernetes on a pool's nodes.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerKubernetes {
    /// The kubelet; replaces the shoot's settings as a whole.
    pub kubelet: Option<KubeletConfig>,
    /// The kubelet's version.
    #[schemars(
        length(min = 1, max = 64),
        regex(pattern = r"^v?[0-9]+\.[0-9]+(\.[0-9]+)?([-+][ -~]+)?$")
    )]
    pub version: Option<String>,
}

/// Machines of a pool.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Machine {
    /// Machine type of the CloudProfile, such as `m5.large`.
    #[schemars(regex(pattern = PRINTABLE))]
    pub type_: String,
    /// Machine image of the CloudProfile. Absent for the default image.
    pub image: Option<ShootMachineImage>,
    /// Architecture of the machines' CPUs: `amd64` or `arm64`.
    #[schemars(regex(pattern = PRINTABLE))]
    pub architecture: Option<String>,
}

/// An image of machines.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShootMachineImage {
    /// Name of a machine image of the CloudProfile.
    #[schemars(regex(pattern = PRINTABLE))]
    pub name: String,
    /// The provider's own configuration of the image.
    pub provider_config: Option<PackedExtension>,
    /// Version of the image. Absent for the newest supported version.
    #[schemars(regex(pattern = PRINTABLE))]
    pub version: Option<String>,
}

/// The root disk.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Volume {
    /// Name of the volume, for references in other fields.
    #[schemars(regex(pattern = PRINTABLE))]
    pub name: Option<String>,
    /// Type of the volume, as the CloudProfile lists the type.
    #[schemars(regex(pattern = PRINTABLE))]
    pub type_: Option<String>,
    /// Size of the volume, such as `50Gi`.
    #[schemars(regex(pattern = PRINTABLE))]
    pub size: String,
    /// Whether the volume is encrypted.
    pub encrypted: Option<bool>,
}

/// A further disk.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataVolume {
    /// Name of the volume, unique in the pool.
    #[schemars(regex(pattern = PRINTABLE))]
    pub name: String,
    /// Type of the volume, as the CloudProfile lists the type.
    #[schemars(regex(pattern = PRINTABLE))]
    pub type_: Option<String>,
    /// Size of the volume, such as `50Gi`.
    #[schemars(regex(pattern = PRINTABLE))]
    pub size: String,
    /// Whether the volume is encrypted.
    pub encrypted: Option<bool>,
}

/// Programs of the landscape on a pool's nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerSystemComponents {
    /// Whether the components of the shoot may run on the nodes of the pool.
    pub allow: bool,
}

/// How machines are looked after.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineControllerManagerSettings {
    /// Longest time for pods to leave a node. Default: 2h.
    pub machine_drain_timeout: Option<Duration>,
    /// Time for which a machine may be unhealthy before replacement. Default: 10m.
    pub machine_health_timeout: Option<Duration>,
    /// Longest time until a machine joins. Default: 20m.
    pub machine_creation_timeout: Option<Duration>,
    /// Highest number of evictions of a pod. Has no effect: `machineDrainTimeout` bounds the drain.
    pub max_evict_retries: Option<i32>,
    /// Conditions that make a machine unhealthy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub node_conditions: Vec<String>,
    /// Longest duration of an update in place. Has no effect: machines are replaced.
    pub in_place_update_timeout: Option<Duration>,
    /// Whether unhealthy machines stay.
    pub disable_health_timeout: Option<bool>,
    /// Time for which a failed machine is preserved for an inspection. Has no effect.
    pub machine_preserve_timeout: Option<Duration>,
    /// Highest number of failed machines that are preserved for an inspection. Has no effect.
    pub auto_preserve_failed_machine_max: Option<i32>,
}

/// How a pool is scaled.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterAutoscalerOptions {
    /// Utilization below which a node counts as idle. Has no effect.
    pub scale_down_utilization_threshold: Option<f64>,
    /// Utilization of accelerators below which a node counts as idle. Has no effect.
    pub scale_down_gpu_utilization_threshold: Option<f64>,
    /// Time for which a node must be idle before removal. Has no effect.
    pub scale_down_unneeded_time: Option<Duration>,
    /// Time for which a node that is not ready must be idle before removal. Has no effect.
    pub scale_down_unready_time: Option<Duration>,
    /// Longest time until a new node joins.
    pub max_node_provision_time: Option<Duration>,
}

/// The cluster's own control plane on a pool.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerControlPlane {
    /// Location of the control plane's backups. Has no effect.
    pub backup: Option<SeedBackup>,
    /// How the control plane on the pool's machines is exposed. Has no effect.
    pub exposure: Option<WorkerControlPlaneExposure>,
}

/// How a control plane on a pool is exposed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerControlPlaneExposure {
    /// Extension that exposes the control plane. Has no effect.
    pub extension: Option<ExposureExtension>,
    /// Exposes the control plane by a DNS name for all nodes. Has no effect.
    pub dns: Option<ExposureDNS>,
}

/// Exposure by an extension.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExposureExtension {
    /// Type of the extension. Default: the type of the provider. Has no effect.
    pub type_: Option<String>,
    /// The extension's own configuration. Has no effect.
    pub provider_config: Option<PackedExtension>,
}

/// Exposure by a name for all nodes; has no settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExposureDNS {}

/// Settings for all pools.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkersSettings {
    /// SSH access to nodes. Has no effect.
    pub ssh_access: Option<SSHAccess>,
}

/// Log-in to nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SSHAccess {
    /// Whether SSH access is possible. Has no effect.
    pub enabled: bool,
}
