//! `CloudProfile`: the offers of a provider.

mod machines;
pub use machines::*;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::{
    derive::{
        BTreeMap, CustomResource, Deserialize, JsonSchema, KubeSchema, RawExtension, Serialize,
        skip_serializing_none,
    },
    gardencore::shoot::{AccessRestriction, SeedSelector},
};

/// The offers of the provider.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "core.gardener.cloud",
    version = "v1beta1",
    kind = "CloudProfile",
    derive = "Default",
    derive = "PartialEq",
    shortname = "cprofile",
    shortname = "cpfl",
    doc = "What a provider offers to shoots.",
    printcolumn(name = "Provider", type_ = "string", json_path = ".spec.type"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct CloudProfileSpec {
    /// Certificates that machines are to trust.
    #[serde(rename = "caBundle")]
    pub ca_bundle: Option<String>,
    /// Kubernetes versions on offer.
    pub kubernetes: KubernetesSettings,
    /// Machine images that worker pools may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_images: Vec<MachineImage>,
    /// Machine types that worker pools may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_types: Vec<MachineType>,
    /// The provider's own configuration.
    pub provider_config: Option<RawExtension>,
    /// Regions of the provider that shoots may use. Has no effect: the region of a Shoot is not compared.
    pub regions: Vec<Region>,
    /// Seeds to which shoots of the profile may move, by label and provider type. Without a selector every
    /// seed is allowed.
    pub seed_selector: Option<SeedSelector>,
    /// Type of the provider. Has no effect: `spec.provider.type` of a Shoot is not compared.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub type_: String,
    /// Types of disks that worker pools may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volume_types: Vec<VolumeType>,
    /// Machines for log-in to nodes.
    pub bastion: Option<BastionMachine>,
    /// Upper limits for shoots of this profile.
    pub limits: Option<Limits>,
    /// Capabilities that distinguish machine types and images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machine_capabilities: Vec<CapabilityDefinition>,
    /// Control planes on machines of the provider.
    pub control_plane: Option<RawExtension>,
}

/// Kubernetes versions on offer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KubernetesSettings {
    /// Versions of Kubernetes that shoots may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<ExpirableVersion>,
}

/// A region on offer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Region {
    /// Name of the region, as the provider calls the region.
    pub name: String,
    /// Zones of the region that worker pools may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<AvailabilityZone>,
    /// Labels to tell regions apart.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Restrictions that a shoot in the region may request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access_restrictions: Vec<AccessRestriction>,
}

/// A zone of a region.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AvailabilityZone {
    /// Name of the zone, as the account calls the zone.
    pub name: String,
    /// Machine types that the zone does not offer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable_machine_types: Vec<String>,
    /// Types of disks that the zone does not offer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unavailable_volume_types: Vec<String>,
}

/// A type of disks on offer.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeType {
    /// Class of the disks: `standard`, `premium`.
    pub class: String,
    /// Name of the type, for `volume.type` of a worker pool.
    pub name: String,
    /// Whether shoots may use the type of disks.
    pub usable: Option<bool>,
    /// Smallest size of a volume of this type.
    pub min_size: Option<Quantity>,
}

/// Bounds for shoots.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Highest number of nodes of a shoot, all pools together.
    pub max_nodes_total: Option<i32>,
}
