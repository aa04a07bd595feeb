//! `ShootState`: state of a shoot that must survive a seed, stored in the garden beside the Shoot (R7-20).

use crate::{
    derive::{
        BTreeMap, CustomResource, Deserialize, JsonSchema, KubeSchema, RawExtension, Serialize,
        skip_serializing_none,
    },
    meta::{NamedResourceReference, ResourceData},
};

/// State that must survive a seed.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
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
#[x_kube(validation = (
    "(has(self.epoch) ? self.epoch : 1) >= (has(oldSelf.epoch) ? oldSelf.epoch : 1)",
    "epoch never falls, and a missing one is 1"
))]
pub struct ShootStateSpec {
    /// The ownership epoch of the last write (`status.ownership.epoch` of the Shoot). Default: 1. The epoch
    /// never falls: a seed of an earlier epoch does not write.
    #[schemars(range(min = 1))]
    pub epoch: Option<i64>,
    /// Data of the gardenlet, such as Secrets of the control plane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gardener: Vec<GardenerResourceData>,
    /// States of extension objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<ExtensionResourceState>,
    /// Objects that extension objects refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceData>,
    /// Where the content is that is too large to stand here (R7-27). The three lists above are empty then,
    /// except for the Secrets that the gardenlet creates once for a shoot.
    pub in_chunks: Option<StateInChunks>,
    /// The last attempt to write chunks. Each attempt has a unique number, so that no two attempts ever write
    /// the same object.
    pub chunk_attempt: Option<ChunkAttempt>,
}

impl ShootStateSpec {
    /// The ownership epoch of the last write. A ShootState without an epoch was written in the first epoch.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.epoch.unwrap_or(1)
    }
}

/// Content in InternalSecrets beside the ShootState. Each InternalSecret holds a zstd frame, and the frames
/// together hold a single text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateInChunks {
    /// Size of the whole text, in bytes.
    pub size: i64,
    /// SHA-256 of the whole text, in hexadecimal.
    pub sha256: String,
    /// The chunks of the text, in order.
    pub chunks: Vec<StateChunk>,
}

/// A chunk of the text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateChunk {
    /// Name of the InternalSecret with the chunk, under key `chunk`.
    pub name: String,
    /// Size of the chunk's text in bytes.
    pub size: i64,
    /// SHA-256 of the chunk in the InternalSecret, in hexadecimal.
    pub sha256: String,
}

/// An attempt to write chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChunkAttempt {
    /// Number of the attempt. Rises by 1 with each attempt.
    pub number: i64,
    /// Names of InternalSecrets that are no longer referred to and that may not be deleted yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<String>,
    /// Numbers of attempts that may have left InternalSecrets without a reference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<i64>,
}

/// An entry of the gardenlet's data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GardenerResourceData {
    /// Name of the entry, e.g. the name of the Secret.
    pub name: String,
    /// Type of the entry: `secret` or `machine-state`.
    pub type_: String,
    /// Content of the carried object.
    pub data: RawExtension,
    /// Labels, by which secrets are distinguished.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// The state of an extension object, identified by kind, name and purpose.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionResourceState {
    /// Kind of the extension object.
    pub kind: String,
    /// Name of the extension object.
    pub name: Option<String>,
    /// Purpose of the extension object, such as `exposure`.
    pub purpose: Option<String>,
    /// The field `state` in the status of the extension object.
    pub state: Option<RawExtension>,
    /// Objects that the extension object refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<NamedResourceReference>,
}
