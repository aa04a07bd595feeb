//! `SecretBinding`: a Secret that shoots of a project may use, and the provider of the Secret. Has no `spec`.

use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, KubeSchema, Serialize, skip_serializing_none},
    meta::{ObjectReference, SecretReference},
};

/// The fields at the top level of the object.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "core.gardener.cloud",
    version = "v1beta1",
    kind = "SecretBinding",
    namespaced,
    no_spec,
    derive = "Default",
    derive = "PartialEq",
    shortname = "sb",
    doc = "Which Secret shoots of a project may use.",
    printcolumn(name = "Secret", type_ = "string", json_path = ".secretRef.name"),
    printcolumn(name = "Provider", type_ = "string", json_path = ".provider.type"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct SecretBindingFields {
    /// The Secret with the credentials.
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    #[x_kube(validation = ("has(self.name)", "secretRef needs a name"))]
    pub secret_ref: SecretReference,
    /// Quotas for shoots that use the credentials. Has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<ObjectReference>,
    /// The provider the credentials are for.
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub provider: Option<SecretBindingProvider>,
}

/// The provider credentials are for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretBindingProvider {
    /// Type of the provider; several types are separated by commas.
    #[schemars(length(min = 1, max = 253))]
    pub type_: String,
}
