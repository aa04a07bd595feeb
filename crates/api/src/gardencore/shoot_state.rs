//! `ShootState`: what must survive a seed, kept in the garden beside the Shoot (R7-20).

use crate::{
    derive::{
        BTreeMap, CustomResource, Deserialize, JsonSchema, RawExtension, Serialize, skip_serializing_none,
    },
    meta::{NamedResourceReference, ResourceData},
};

/// What must survive.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "core.gardener.cloud",
    version = "v1beta1",
    kind = "ShootState",
    namespaced,
    derive = "Default",
    derive = "PartialEq",
    doc = "What of a shoot must survive its seed.",
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ShootStateSpec {
    /// Data of the gardenlet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gardener: Vec<GardenerResourceData>,
    /// States of extension objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<ExtensionResourceState>,
    /// Objects that extension objects refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceData>,
}

/// One piece of the gardenlet's data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GardenerResourceData {
    /// Its name, e.g. that of the Secret.
    pub name: String,
    /// What it is: `secret` or `machine-state`.
    pub type_: String,
    /// Its content.
    pub data: RawExtension,
    /// Labels, by which secrets are told apart.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// The state of one extension object; kind, name and purpose tell which.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionResourceState {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: Option<String>,
    /// Its purpose.
    pub purpose: Option<String>,
    /// What its status said.
    pub state: Option<RawExtension>,
    /// Objects it refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<NamedResourceReference>,
}
