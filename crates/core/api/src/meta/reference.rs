//! References between objects.

use crate::derive::{Deserialize, JsonSchema, RawExtension, Serialize, skip_serializing_none};

/// A Secret by name and namespace.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct SecretReference {
    /// Name of the Secret, unique in the namespace.
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
    /// Name of the object, in the namespace of the referring object. Default: empty.
    #[serde(default)]
    pub name: String,
}

/// Any object, in the form of Kubernetes' own references.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ObjectReference {
    /// API group and version of the object.
    pub api_version: Option<String>,
    /// Kind of the object, such as `Secret`.
    pub kind: Option<String>,
    /// Name of the object, unique in the namespace.
    pub name: Option<String>,
    /// Namespace of the object.
    pub namespace: Option<String>,
    /// UID of the object, unique for all times.
    pub uid: Option<String>,
    /// Observed resource version of the object.
    pub resource_version: Option<String>,
    /// Path of the field of the object that is meant.
    pub field_path: Option<String>,
}

/// An object of the same namespace, with the API group.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct CrossVersionObjectReference {
    /// API group and version of the object.
    pub api_version: Option<String>,
    /// Kind of the object, such as `Secret`.
    pub kind: String,
    /// Name of the object, unique in the namespace.
    pub name: String,
}

/// An object with a name for references in configurations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamedResourceReference {
    /// The name by which configurations refer to the object.
    pub name: String,
    /// Reference to the object, in the namespace of the referring object.
    pub resource_ref: CrossVersionObjectReference,
}

/// An object together with the content, as carried from seed to seed.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceData {
    /// API group and version of the object.
    pub api_version: Option<String>,
    /// Kind of the object, such as `Secret`.
    pub kind: String,
    /// Name of the object, unique in the namespace.
    pub name: String,
    /// Content of the object.
    pub data: RawExtension,
}

/// A duration in the notation of Go, e.g. `1h30m`.
pub type Duration = String;
