//! `ControlPlane`: the provider's own parts beside a shoot's control plane.

use super::{DefaultSpec, DefaultStatus, object::extension_object};
use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, RawExtension, Serialize, skip_serializing_none},
    leader_migration::LeaderMigration,
    meta::SecretReference,
};

/// The provider's additions to a control plane.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "ControlPlane",
    namespaced,
    status = "DefaultStatus",
    derive = "Default",
    derive = "PartialEq",
    shortname = "cp",
    doc = "The provider's own parts beside a shoot's control plane.",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.type",
        description = "The provider."
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
pub struct ControlPlaneSpec {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultSpec,
    /// Provider status of the Infrastructure.
    pub infrastructure_provider_status: Option<RawExtension>,
    /// Region of the shoot's machines, as the provider calls the region.
    pub region: String,
    /// Credentials of the account.
    pub secret_ref: SecretReference,
    /// Further controllers of the cloud-controller-manager. Absent for no further controllers.
    pub cloud_controller_manager: Option<CloudControllerManager>,
}

/// Controllers that a shoot's cloud-controller-manager runs instead of another manager. The user of the Shoot
/// decides, as both managers must agree (RK-03); the provider renders the flags.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudControllerManager {
    /// Node IPAM runs in the cloud-controller-manager, with these ranges of pod addresses. Absent if node
    /// IPAM runs elsewhere.
    #[serde(rename = "nodeIPAM")]
    pub node_ipam: Option<NodeIPAM>,
    /// The cloud-controller-manager shares a lock for these controllers with another manager. Absent if all
    /// its controllers run under its own lock; then the flags of leader migration are not set.
    pub leader_migration: Option<LeaderMigration>,
}

/// Ranges of addresses for node IPAM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeIPAM {
    /// Range of addresses of pods, in CIDR notation.
    #[serde(rename = "clusterCIDR")]
    pub cluster_cidr: String,
    /// Range of addresses of services, excluded from the range of pods.
    #[serde(rename = "serviceClusterIPRange")]
    pub service_cluster_ip_range: String,
}

extension_object!(
    ControlPlane,
    default_status,
    fn secret_ref(&self) -> Option<&SecretReference> {
        Some(&self.spec.secret_ref)
    }
);
