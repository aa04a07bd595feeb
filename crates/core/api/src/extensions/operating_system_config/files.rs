//! Files and units of machines.

use crate::derive::{Deserialize, JsonSchema, Serialize, skip_serializing_none};

/// A unit of systemd.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unit {
    /// Name of the systemd unit, such as `kubelet.service`.
    pub name: String,
    /// Command for the unit: `start`, `restart`, `stop`.
    pub command: Option<String>,
    /// Whether the unit starts with the machine.
    pub enable: Option<bool>,
    /// Content of the unit's file.
    pub content: Option<String>,
    /// Drop-in files of the unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop_ins: Vec<DropIn>,
    /// Files whose changes restart the unit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_paths: Vec<String>,
}

/// An addition to a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DropIn {
    /// Name of the drop-in file, such as `10-args.conf`.
    pub name: String,
    /// Content of the drop-in file.
    pub content: String,
}

/// A file.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// Absolute path of the file on the machine.
    pub path: String,
    /// Permissions of the file, as an integer.
    pub permissions: Option<i32>,
    /// Content of the file, from a single source.
    pub content: FileContent,
    /// Host name of the only machine that gets the file. Absent for all machines.
    pub host_name: Option<String>,
}

/// Content of a file, from a single one of the three sources.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileContent {
    /// Content that is a value of a Secret.
    pub secret_ref: Option<FileContentSecretRef>,
    /// Content that stands in this object.
    pub inline: Option<FileContentInline>,
    /// Whether the content is transmitted to machines without encoding.
    pub transmit_unencoded: Option<bool>,
    /// Content that is a file of a container image.
    pub image_ref: Option<FileContentImageRef>,
}

/// Content from a Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileContentSecretRef {
    /// Name of the Secret with the content.
    pub name: String,
    /// Key of the content in the Secret.
    pub data_key: String,
}

/// Content as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileContentInline {
    /// Encoding of `data`: empty or `b64`.
    pub encoding: String,
    /// Content, encoded as `encoding` says.
    pub data: String,
}

/// Content from an image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileContentImageRef {
    /// Reference of the container image.
    pub image: String,
    /// Path of the file in the image.
    pub file_path_in_image: String,
}
