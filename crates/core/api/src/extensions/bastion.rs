//! `Bastion`: a temporary machine for access to nodes.

use k8s_openapi::{ByteString, api::core::v1::LoadBalancerIngress, api::networking::v1::IPBlock};

use super::{DefaultSpec, DefaultStatus, object::extension_object};
use crate::derive::{CustomResource, Deserialize, JsonSchema, Serialize, skip_serializing_none};

/// Allowed clients, and the user data of the machine.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "Bastion",
    namespaced,
    status = "BastionStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "A temporary machine for access to nodes. No controller of the suite acts on this kind.",
    printcolumn(
        name = "IP",
        type_ = "string",
        json_path = ".status.ingress.ip",
        description = "Its address."
    ),
    printcolumn(
        name = "Hostname",
        type_ = "string",
        json_path = ".status.ingress.hostname",
        description = "Its name."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct BastionSpec {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultSpec,
    /// User data, which the machine runs at the first boot.
    #[schemars(schema_with = "crate::meta::bytes_schema")]
    pub user_data: ByteString,
    /// Clients that may connect to the bastion.
    pub ingress: Vec<BastionIngressPolicy>,
}

/// Clients that may connect.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BastionIngressPolicy {
    /// Range of addresses of the clients.
    pub ip_block: IPBlock,
}

/// Observed state of the bastion.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BastionStatus {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultStatus,
    /// Address of the bastion for clients.
    pub ingress: Option<LoadBalancerIngress>,
}

extension_object!(Bastion, flat_status);
