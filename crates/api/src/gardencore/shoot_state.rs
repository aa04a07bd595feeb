//! `ShootState`: what must survive a seed, kept in the garden beside the Shoot (R7-20).

use crate::{
    derive::{
        BTreeMap, CustomResource, Deserialize, JsonSchema, KubeSchema, RawExtension, Serialize,
        skip_serializing_none,
    },
    meta::{NamedResourceReference, ResourceData},
};

/// What must survive.
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
    /// The ownership epoch in which it was written last (`status.ownership.epoch` of the Shoot). A missing
    /// one is 1. It never falls: a seed of an earlier epoch writes nothing.
    #[schemars(range(min = 1))]
    pub epoch: Option<i64>,
    /// Data of the gardenlet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gardener: Vec<GardenerResourceData>,
    /// States of extension objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extensions: Vec<ExtensionResourceState>,
    /// Objects that extension objects refer to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceData>,
    /// Where the content is that is too large to stand here (R7-27); the three lists above are empty then.
    pub in_chunks: Option<StateInChunks>,
    /// The last attempt to write chunks. Each has a number of its own, so that no two ever write the same
    /// object.
    pub chunk_attempt: Option<ChunkAttempt>,
}

impl ShootStateSpec {
    /// The epoch in which it was written last. One that says none was written in the first.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.epoch.unwrap_or(1)
    }
}

/// Content that lies in InternalSecrets beside the ShootState: zstd frames, one an object, of one text after
/// another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateInChunks {
    /// Bytes of the whole text.
    pub size: i64,
    /// SHA-256 of the whole text, in hexadecimal.
    pub sha256: String,
    /// Its pieces, in their order.
    pub chunks: Vec<StateChunk>,
}

/// One piece.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StateChunk {
    /// Name of the InternalSecret that holds it, under key `chunk`.
    pub name: String,
    /// Size of the chunk's text in bytes.
    pub size: i64,
    /// SHA-256 of what the InternalSecret holds, in hexadecimal.
    pub sha256: String,
}

/// An attempt to write chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChunkAttempt {
    /// Its number; goes up by one with each.
    pub number: i64,
    /// Names of InternalSecrets that nothing refers to any more and that may not be deleted yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<String>,
    /// Numbers of attempts that may have left InternalSecrets which nothing refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unfinished: Vec<i64>,
}

/// One piece of the gardenlet's data.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GardenerResourceData {
    /// Its name, e.g. that of the Secret.
    pub name: String,
    /// What it is: `secret` or `machine-state`.
    pub type_: String,
    /// Content of the carried object.
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
    /// Kind of the extension object.
    pub kind: String,
    /// Name of the extension object.
    pub name: Option<String>,
    /// Purpose of the extension object, such as `exposure`.
    pub purpose: Option<String>,
    /// What its status said.
    pub state: Option<RawExtension>,
    /// Objects it refers to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<NamedResourceReference>,
}
