//! `ManagedResource`: manifests in Secrets that are kept applied in the seed or in the shoot.

use crate::{
    derive::{BTreeMap, CustomResource, Deserialize, JsonSchema, Serialize, skip_serializing_none},
    meta::{Condition, LocalObjectReference},
};

/// The objects to apply, and the settings.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "resources.gardener.cloud",
    version = "v1alpha1",
    kind = "ManagedResource",
    namespaced,
    status = "ManagedResourceStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "mr",
    doc = "Manifests in Secrets that are kept applied.",
    printcolumn(
        name = "Class",
        type_ = "string",
        json_path = ".spec.class",
        description = "Who applies it; empty means to the shoot."
    ),
    printcolumn(
        name = "Applied",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ResourcesApplied\")].status",
        description = "Whether all objects are applied."
    ),
    printcolumn(
        name = "Healthy",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ResourcesHealthy\")].status",
        description = "Whether all objects are healthy."
    ),
    printcolumn(
        name = "Progressing",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ResourcesProgressing\")].status",
        description = "Whether some objects still roll out."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct ManagedResourceSpec {
    /// Class of the ManagedResource: `seed` for objects in the seed, absent for objects in the shoot.
    pub class: Option<String>,
    /// The Secrets with the manifests.
    pub secret_refs: Vec<LocalObjectReference>,
    /// Labels that all objects get.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inject_labels: BTreeMap<String, String>,
    /// Whether labels of other writers are removed.
    pub force_overwrite_labels: Option<bool>,
    /// Whether annotations of other writers are removed.
    pub force_overwrite_annotations: Option<bool>,
    /// Whether the objects stay when this ManagedResource is deleted. Set before a move, so that no object in
    /// the shoot disappears.
    pub keep_objects: Option<bool>,
    /// Kinds that are the same under several groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equivalences: Vec<Vec<Equivalence>>,
    /// Whether the volumes of stateful sets are deleted with them.
    pub delete_persistent_volume_claims: Option<bool>,
}

/// A kind under an API group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Equivalence {
    /// API group of the equivalent kind.
    pub group: String,
    /// Name of the equivalent kind.
    pub kind: String,
}

/// Observed state of the applied objects.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManagedResourceStatus {
    /// Conditions: whether the objects are applied, healthy, or rolling out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The generation that was acted on.
    pub observed_generation: Option<i64>,
    /// Objects that the ManagedResource manages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ManagedResourceStatusObject>,
    /// Checksum of the Secrets that were acted on.
    pub secrets_data_checksum: Option<String>,
}

/// An object that is applied.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct ManagedResourceStatusObject {
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
    /// Labels that the object was given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations that the object was given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}
