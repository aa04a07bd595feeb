//! `ControlPlane`: the provider's own parts beside a shoot's control plane.

use super::{DefaultSpec, DefaultStatus, object::extension_object};
use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, RawExtension, Serialize, skip_serializing_none},
    leader_migration::LeaderMigration,
    meta::SecretReference,
};

/// What the provider adds to a control plane.
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
    /// What every extension has.
    #[serde(flatten)]
    pub default: DefaultSpec,
    /// What the provider said of the infrastructure.
    pub infrastructure_provider_status: Option<RawExtension>,
    /// Region of the shoot's machines, as the provider calls the region.
    pub region: String,
    /// Credentials of the account.
    pub secret_ref: SecretReference,
    /// What the cloud-controller-manager runs beside its own controllers; absent: nothing.
    pub cloud_controller_manager: Option<CloudControllerManager>,
}

/// Controllers that a shoot's cloud-controller-manager runs for another manager. The one of whose Shoot this
/// is decides it, as both managers must agree (RK-03); the provider turns it into flags.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CloudControllerManager {
    /// It gives Nodes their ranges of pod addresses, out of these; absent: it does not.
    #[serde(rename = "nodeIPAM")]
    pub node_ipam: Option<NodeIPAM>,
    /// It shares its lock for these controllers with another manager; absent: it runs what it runs under its
    /// own lock, and the flags of leader migration are gone.
    pub leader_migration: Option<LeaderMigration>,
}

/// Ranges of addresses for node IPAM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeIPAM {
    /// Range of addresses of pods, in CIDR notation.
    #[serde(rename = "clusterCIDR")]
    pub cluster_cidr: String,
    /// Of the services, which are kept out of it.
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
