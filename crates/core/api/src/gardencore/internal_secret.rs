//! `InternalSecret`: data that only machinery of the garden may read. Like a Secret, and in no role of a
//! project.

use k8s_openapi::ByteString;

use crate::derive::{BTreeMap, CustomResource, Deserialize, KubeSchema, Serialize, skip_serializing_none};

/// The fields at the top level of the object.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "core.gardener.cloud",
    version = "v1beta1",
    kind = "InternalSecret",
    namespaced,
    no_spec,
    derive = "Default",
    derive = "PartialEq",
    shortname = "ins",
    doc = "Data that only machinery of the garden may read.",
    printcolumn(name = "Type", type_ = "string", json_path = ".type"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!(has(oldSelf.immutable) && oldSelf.immutable) || (has(self.immutable) && self.immutable \
     && has(self.data) == has(oldSelf.data) && (!has(self.data) || self.data == oldSelf.data))",
    "data of an immutable InternalSecret cannot be changed"
))]
pub struct InternalSecretFields {
    /// Whether the data can be changed.
    pub immutable: Option<bool>,
    /// Data by key, in base64.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, String>")]
    pub data: BTreeMap<String, ByteString>,
    /// Data by key, as text. The API server of Gardener moves the text into `data`. Has no effect here: the
    /// text is stored, and no process reads the text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub string_data: BTreeMap<String, String>,
    /// Purpose of the data, as for a Secret.
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub type_: Option<String>,
}
