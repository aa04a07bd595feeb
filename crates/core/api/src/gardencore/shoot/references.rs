//! References of a Shoot: profile, seeds, extensions, restrictions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::derive::{
    BTreeMap, Deserialize, JsonSchema, KubeSchema, PRINTABLE, PackedExtension, Serialize,
    skip_serializing_none,
};

/// A CloudProfile or NamespacedCloudProfile.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CloudProfileReference {
    /// Kind of the profile. Default: `CloudProfile`.
    #[serde(default)]
    pub kind: CloudProfileKind,
    /// Name of the CloudProfile or NamespacedCloudProfile.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub name: String,
}

/// Kinds of profiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum CloudProfileKind {
    /// For all projects.
    #[default]
    CloudProfile,
    /// For the project only.
    NamespacedCloudProfile,
}

/// Selection of the seeds that may host a shoot.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SeedSelector {
    /// Labels that a seed must have to host the shoot.
    #[serde(flatten)]
    pub selector: LabelSelector,
    /// Providers of seeds; `*` is any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub provider_types: Vec<String>,
}

/// A further extension.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Extension {
    /// Type of the extension, as offered by a ControllerRegistration.
    #[schemars(length(min = 1, max = 253), regex(pattern = PRINTABLE))]
    pub type_: String,
    /// The extension's own configuration.
    pub provider_config: Option<PackedExtension>,
    /// Whether an extension that is on by default is switched off.
    pub disabled: Option<bool>,
}

/// A restriction of access.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccessRestriction {
    /// Name of the restriction, as the CloudProfile lists the name.
    pub name: String,
}

/// A restriction of access, with options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AccessRestrictionWithOptions {
    /// Name of the restriction, as the CloudProfile lists the name.
    pub name: String,
    /// Options of the restriction, by name. Has no effect.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub options: BTreeMap<String, String>,
}
