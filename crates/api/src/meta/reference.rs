//! References from one object to another.

use crate::derive::{Deserialize, JsonSchema, RawExtension, Serialize, skip_serializing_none};

/// A Secret by name and namespace.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SecretReference {
    /// Name of the Secret, unique in its namespace.
    pub name: Option<String>,
    /// Namespace of the Secret.
    pub namespace: Option<String>,
}

impl SecretReference {
    /// Refers to the Secret `namespace/name`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            name: Some(name.into()),
            namespace: Some(namespace.into()),
        }
    }
}

/// An object by name, in the namespace of the referring object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct LocalObjectReference {
    /// Name of the object, in the namespace of the referring object.
    #[serde(default)]
    pub name: String,
}

/// Any object, as Kubernetes' own kinds refer to one.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ObjectReference {
    /// Its group and version.
    pub api_version: Option<String>,
    /// Kind of the object, such as `Secret`.
    pub kind: Option<String>,
    /// Name of the object, unique in its namespace.
    pub name: Option<String>,
    /// Namespace of the object.
    pub namespace: Option<String>,
    /// UID of the object, which is unique for all times.
    pub uid: Option<String>,
    /// The version of it that was seen.
    pub resource_version: Option<String>,
    /// Path of the field of the object that is meant.
    pub field_path: Option<String>,
}

/// An object of the same namespace, with its group.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct CrossVersionObjectReference {
    /// Its group and version.
    pub api_version: Option<String>,
    /// Kind of the object, such as `Secret`.
    pub kind: String,
    /// Name of the object, unique in its namespace.
    pub name: String,
}

/// An object that configurations refer to by a name of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedResourceReference {
    /// The name by which configurations refer to it.
    pub name: String,
    /// Reference to the object, in the namespace of the referring object.
    pub resource_ref: CrossVersionObjectReference,
}

/// An object together with its content, as it is carried from one seed to another.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceData {
    /// Its group and version.
    pub api_version: Option<String>,
    /// Kind of the object, such as `Secret`.
    pub kind: String,
    /// Name of the object, unique in its namespace.
    pub name: String,
    /// Content of the object.
    pub data: RawExtension,
}

/// A span of time as Go writes it, e.g. `1h30m`.
pub type Duration = String;
