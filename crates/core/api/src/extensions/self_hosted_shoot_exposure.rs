//! `SelfHostedShootExposure`: access for clients to a control plane that runs on the nodes of the shoot.

use k8s_openapi::api::core::v1::{LoadBalancerIngress, NodeAddress};

use super::{DefaultSpec, DefaultStatus, object::extension_object};
use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, Serialize, skip_serializing_none},
    meta::ObjectReference,
};

/// The endpoints to expose.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "SelfHostedShootExposure",
    namespaced,
    status = "SelfHostedShootExposureStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "exp",
    doc = "Access to a control plane on nodes of the shoot. No controller of the suite acts on this kind.",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.type",
        description = "The provider."
    ),
    printcolumn(
        name = "IP",
        type_ = "string",
        json_path = ".status.ingress[0].ip",
        description = "Its first address."
    ),
    printcolumn(
        name = "Hostname",
        type_ = "string",
        json_path = ".status.ingress[0].hostname",
        description = "Its first name."
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
pub struct SelfHostedShootExposureSpec {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultSpec,
    /// Credentials of the account.
    pub credentials_ref: Option<ObjectReference>,
    /// Nodes with a control plane that the exposure reaches.
    pub endpoints: Vec<ControlPlaneEndpoint>,
    /// Port of the API server on the nodes.
    pub port: i32,
}

/// A node with a control plane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ControlPlaneEndpoint {
    /// Name of the node with the control plane.
    pub node_name: String,
    /// Addresses of the node.
    pub addresses: Vec<NodeAddress>,
}

/// Observed state of the exposure.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelfHostedShootExposureStatus {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultStatus,
    /// Addresses of the exposed control plane.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ingress: Vec<LoadBalancerIngress>,
}

extension_object!(SelfHostedShootExposure, flat_status);
