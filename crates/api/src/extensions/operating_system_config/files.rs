//! Files and units of machines.

use crate::derive::{Deserialize, JsonSchema, Serialize, skip_serializing_none};

/// A unit of systemd.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unit {
    /// Its name.
    pub name: String,
    /// What is done with it: `start`, `restart`, `stop`.
    pub command: Option<String>,
    /// Whether it starts with the machine.
    pub enable: Option<bool>,
    /// Its content.
    pub content: Option<String>,
    /// Additions to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop_ins: Vec<DropIn>,
    /// Files that restart it when they change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_paths: Vec<String>,
}

/// An addition to a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropIn {
    /// Its name.
    pub name: String,
    /// Its content.
    pub content: String,
}

/// A file.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// Where it is.
    pub path: String,
    /// Who may do what with it.
    pub permissions: Option<i32>,
    /// What is in it.
    pub content: FileContent,
    /// On which machine only.
    pub host_name: Option<String>,
}

/// What is in a file: one of the three.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileContent {
    /// The content of a Secret.
    pub secret_ref: Option<FileContentSecretRef>,
    /// This.
    pub inline: Option<FileContentInline>,
    /// Whether it gets to machines as it is.
    pub transmit_unencoded: Option<bool>,
    /// A file of an image.
    pub image_ref: Option<FileContentImageRef>,
}

/// Content from a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileContentSecretRef {
    /// The Secret's name.
    pub name: String,
    /// The key in it.
    pub data_key: String,
}

/// Content as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileContentInline {
    /// How it is encoded: empty or `b64`.
    pub encoding: String,
    /// The text.
    pub data: String,
}

/// Content from an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileContentImageRef {
    /// The image.
    pub image: String,
    /// The file in it.
    pub file_path_in_image: String,
}
