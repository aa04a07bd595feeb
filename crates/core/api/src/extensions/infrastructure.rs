//! `Infrastructure`: networks and the like in the provider's account, once a shoot.

use k8s_openapi::ByteString;

use super::{DefaultSpec, DefaultStatus, object::extension_object};
use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, Serialize, skip_serializing_none},
    meta::SecretReference,
};

/// The wanted resources in the provider's account.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "Infrastructure",
    namespaced,
    status = "InfrastructureStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "infra",
    doc = "What a shoot needs in its provider's account.",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.type",
        description = "The provider."
    ),
    printcolumn(
        name = "Region",
        type_ = "string",
        json_path = ".spec.region",
        description = "The region."
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.lastOperation.state",
        description = "How the last operation stands."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct InfrastructureSpec {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultSpec,
    /// Region of the infrastructure, as the provider calls the region.
    pub region: String,
    /// Credentials of the account.
    pub secret_ref: SecretReference,
    /// Key to be let into machines.
    // The attribute below hides from schemars that the field may be missing.
    #[serde(default)]
    #[schemars(schema_with = "crate::meta::bytes_schema")]
    pub ssh_public_key: Option<ByteString>,
}

/// Observed state of the infrastructure.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InfrastructureStatus {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultStatus,
    /// The network of the nodes, if the provider chose the network.
    #[serde(rename = "nodesCIDR")]
    pub nodes_cidr: Option<String>,
    /// Source addresses of traffic from the shoot, in CIDR notation.
    #[serde(rename = "egressCIDRs", default, skip_serializing_if = "Vec::is_empty")]
    pub egress_cidrs: Vec<String>,
    /// Ranges of addresses in use.
    pub networking: Option<InfrastructureStatusNetworking>,
}

/// Networks in use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InfrastructureStatusNetworking {
    /// Ranges of addresses of pods, in CIDR notation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<String>,
    /// Ranges of addresses of nodes, in CIDR notation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// Ranges of addresses of services, in CIDR notation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
}

extension_object!(
    Infrastructure,
    flat_status,
    fn secret_ref(&self) -> Option<&SecretReference> {
        Some(&self.spec.secret_ref)
    }
);
