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
    /// The version.
    pub version: String,
    /// When it is no longer on offer.
    pub expiration_date: Option<Time>,
    /// How well it is looked after.
    pub classification: Option<VersionClassification>,
    /// How well it is looked after, and from when.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lifecycle: Vec<LifecycleStage>,
}

/// How well a version is looked after from a time on.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LifecycleStage {
    /// How well.
    pub classification: VersionClassification,
    /// From when; always, unless given.
    pub start_time: Option<Time>,
}

/// How well a version is looked after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VersionClassification {
    /// Not on offer yet.
    Unavailable,
    /// New; nothing is updated to it by itself.
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
    /// Its name.
    pub name: String,
    /// Its versions.
    pub versions: Vec<MachineImageVersion>,
    /// How far an update by itself goes.
    pub update_strategy: Option<MachineImageUpdateStrategy>,
}

/// How far an update of a machine image by itself goes.
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
    /// The version.
    #[serde(flatten)]
    pub version: ExpirableVersion,
    /// What runs containers in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cri: Vec<CRI>,
    /// Processors it is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub architectures: Vec<String>,
    /// Versions of the kubelet that it can run.
    pub kubelet_version_constraint: Option<String>,
    /// Updates in place.
    pub in_place_updates: Option<InPlaceUpdates>,
    /// What it can do, as one of several builds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capability_flavors: Vec<Capabilities>,
}

/// What a machine can do: values by name of the capability.
pub type Capabilities = BTreeMap<String, Vec<String>>;

/// Updates of an image in place.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InPlaceUpdates {
    /// Whether they work.
    pub supported: bool,
    /// From which version on.
    pub min_version_for_update: Option<String>,
}

/// A machine type on offer.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineType {
    /// Its processors.
    pub cpu: Quantity,
    /// Its accelerators.
    pub gpu: Quantity,
    /// Its memory.
    pub memory: Quantity,
    /// Its name.
    pub name: String,
    /// Its own disk.
    pub storage: Option<MachineTypeStorage>,
    /// Whether shoots may use it.
    pub usable: Option<bool>,
    /// Kind of its processors.
    pub architecture: Option<String>,
    /// What it can do.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capabilities: Capabilities,
}

/// The own disk of a machine type.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineTypeStorage {
    /// How good it is.
    pub class: String,
    /// Its size.
    pub size: Option<Quantity>,
    /// Its type.
    pub type_: String,
    /// Its smallest size.
    pub min_size: Option<Quantity>,
}

/// Something machine types and images can be told apart by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CapabilityDefinition {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
}

/// Machines for log-in to nodes.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BastionMachine {
    /// Their image.
    pub machine_image: Option<BastionMachineImage>,
    /// Their type.
    pub machine_type: Option<BastionMachineType>,
}

/// Image of machines for log-in.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BastionMachineImage {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: Option<String>,
}

/// Type of machines for log-in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BastionMachineType {
    /// Its name.
    pub name: String,
}
