//! Machines that a provider offers.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::{
    derive::{BTreeMap, Deserialize, JsonSchema, Serialize, Time, skip_serializing_none},
    gardencore::shoot::CRI,
};

/// A version that may end.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExpirableVersion {
    /// The version, such as `1.34.4`.
    pub version: String,
    /// Time after which the version is no longer on offer.
    pub expiration_date: Option<Time>,
    /// Support of the version: preview, supported, deprecated, or expired.
    pub classification: Option<VersionClassification>,
    /// Stages of the support of the version, each with a start time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifecycle: Vec<LifecycleStage>,
}

/// How well a version is looked after from a time on.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleStage {
    /// Support of the version in this stage: preview, supported, deprecated, or expired.
    pub classification: VersionClassification,
    /// Time at which the stage begins. Absent for a stage that has always applied.
    pub start_time: Option<Time>,
}

/// Support of the version: preview, supported, deprecated, or expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VersionClassification {
    /// Not on offer yet.
    Unavailable,
    /// New; no automatic update leads to this version.
    Preview,
    /// Recommended.
    Supported,
    /// Should be left.
    Deprecated,
    /// No longer on offer.
    Expired,
}

/// A machine image on offer.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineImage {
    /// Name of the image, for `machine.image.name` of a worker pool.
    pub name: String,
    /// Versions of the image that shoots may use.
    pub versions: Vec<MachineImageVersion>,
    /// Limit of automatic updates: the patch, minor or major version.
    pub update_strategy: Option<MachineImageUpdateStrategy>,
}

/// Limit of automatic updates: the patch, minor or major version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum MachineImageUpdateStrategy {
    /// To the newest patch of the minor version.
    Patch,
    /// To the newest minor version of the major version.
    Minor,
    /// To the newest version.
    Major,
}

/// A version of a machine image.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineImageVersion {
    /// The version of the image, with classification and expiry.
    #[serde(flatten)]
    pub version: ExpirableVersion,
    /// Container runtimes of the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cri: Vec<CRI>,
    /// CPU architectures of the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub architectures: Vec<String>,
    /// Constraint on the versions of the kubelet that the image can run.
    pub kubelet_version_constraint: Option<String>,
    /// Support of updates in place for this version. Has no effect: machines are replaced.
    pub in_place_updates: Option<InPlaceUpdates>,
    /// Capabilities of each build of the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capability_flavors: Vec<Capabilities>,
}

/// Capabilities of a machine: values by name of the capability.
pub type Capabilities = BTreeMap<String, Vec<String>>;

/// Updates of an image in place.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceUpdates {
    /// Whether machines can be updated to this version in place. Has no effect: machines are replaced.
    pub supported: bool,
    /// Lowest version that can be updated to this version in place. Has no effect: machines are replaced.
    pub min_version_for_update: Option<String>,
}

/// A machine type on offer.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineType {
    /// Number of CPUs of a machine of this type.
    pub cpu: Quantity,
    /// Number of GPUs of a machine of this type.
    pub gpu: Quantity,
    /// Memory of a machine of this type.
    pub memory: Quantity,
    /// Name of the type, for `machine.type` of a worker pool.
    pub name: String,
    /// Disk that comes with a machine of this type. Absent if the type has none.
    pub storage: Option<MachineTypeStorage>,
    /// Whether shoots may use the machine type.
    pub usable: Option<bool>,
    /// CPU architecture of the machine type.
    pub architecture: Option<String>,
    /// Capabilities of machines of this type, such as the architecture, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capabilities: Capabilities,
}

/// The own disk of a machine type.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineTypeStorage {
    /// Class of the disk, such as `standard` or `premium`.
    pub class: String,
    /// Size of the disk of a machine.
    pub size: Option<Quantity>,
    /// Type of the disk, as the provider calls the type.
    pub type_: String,
    /// Smallest size of the disk that a worker pool may ask for.
    pub min_size: Option<Quantity>,
}

/// A capability that distinguishes machine types and images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityDefinition {
    /// Name of the capability, such as `architecture`.
    pub name: String,
    /// Values that the capability can have, such as `amd64`.
    pub values: Vec<String>,
}

/// Machines for log-in to nodes.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BastionMachine {
    /// Image of machines for bastions. Absent if the provider chooses.
    pub machine_image: Option<BastionMachineImage>,
    /// Type of machines for bastions. Absent if the provider chooses.
    pub machine_type: Option<BastionMachineType>,
}

/// Image of machines for log-in.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BastionMachineImage {
    /// Name of a machine image of this profile.
    pub name: String,
    /// Version of the image. Absent for the newest version.
    pub version: Option<String>,
}

/// Type of machines for log-in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BastionMachineType {
    /// Name of a machine type of this profile.
    pub name: String,
}
