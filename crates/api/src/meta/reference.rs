//! References from one object to another.

use crate::derive::{Deserialize, JsonSchema, RawExtension, Serialize, skip_serializing_none};

/// A Secret by name and namespace.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SecretReference {
    /// Its name.
    pub name: Option<String>,
    /// Its namespace.
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
    /// Its name.
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
    /// Its kind.
    pub kind: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// Its namespace.
    pub namespace: Option<String>,
    /// Its unique id.
    pub uid: Option<String>,
    /// The version of it that was seen.
    pub resource_version: Option<String>,
    /// A part of it.
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
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// An object that configurations refer to by a name of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedResourceReference {
    /// The name by which configurations refer to it.
    pub name: String,
    /// The object.
    pub resource_ref: CrossVersionObjectReference,
}

/// An object together with its content, as it is carried from one seed to another.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceData {
    /// Its group and version.
    pub api_version: Option<String>,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its content.
    pub data: RawExtension,
}

/// A span of time as Go writes it, e.g. `1h30m`.
pub type Duration = String;
