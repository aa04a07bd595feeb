//! `CredentialsBinding`: credentials that shoots of a project may use, and the provider of the credentials.
//! Has no `spec`.

use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, KubeSchema, Serialize},
    meta::ObjectReference,
};

/// The fields at the top level of the object.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "security.gardener.cloud",
    version = "v1alpha1",
    kind = "CredentialsBinding",
    namespaced,
    no_spec,
    derive = "Default",
    derive = "PartialEq",
    shortname = "cb",
    doc = "Which credentials shoots of a project may use.",
    printcolumn(name = "Provider", type_ = "string", json_path = ".provider.type"),
    printcolumn(
        name = "Credentials APIVersion",
        type_ = "string",
        json_path = ".credentialsRef.apiVersion"
    ),
    printcolumn(
        name = "Credentials Kind",
        type_ = "string",
        json_path = ".credentialsRef.kind"
    ),
    printcolumn(
        name = "Credentials Name",
        type_ = "string",
        json_path = ".credentialsRef.name"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsBindingFields {
    /// The provider the credentials are for.
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub provider: CredentialsBindingProvider,
    /// The Secret or other object with the credentials. Default namespace: the namespace of the binding.
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    #[x_kube(validation = (
        "has(self.name) && has(self.kind) && has(self.apiVersion)",
        "credentialsRef needs apiVersion, kind and name"
    ))]
    pub credentials_ref: ObjectReference,
    /// Quotas for shoots that use the credentials. Has no effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotas: Vec<ObjectReference>,
}

/// The provider credentials are for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CredentialsBindingProvider {
    /// Type of the provider; several types are separated by commas.
    #[schemars(length(min = 1, max = 253))]
    pub type_: String,
}
