//! `SubnetIsolation`: a zone of a shoot's network is closed (GEP-21, RZ-30).

use super::{DefaultSpec, DefaultStatus, object::extension_object};
use crate::{
    derive::{CustomResource, Deserialize, KubeSchema, RawExtension, Serialize, skip_serializing_none},
    meta::SecretReference,
};

/// The zone to close: no packet enters or leaves the zone. The deletion of the object restores the former
/// rules of the network.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "SubnetIsolation",
    namespaced,
    status = "DefaultStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "One zone of a shoot's network is closed.",
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
        name = "Zone ID",
        type_ = "string",
        json_path = ".spec.isolatedZoneID",
        description = "The zone that is closed, by the provider's physical ID of it."
    ),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = ".status.lastOperation.state",
        description = "How the last operation stands."
    ),
    printcolumn(
        name = "Zone",
        type_ = "string",
        json_path = ".status.providerStatus.isolatedZoneCode",
        description = "What the account calls the zone.",
        priority = 1
    ),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = ".status.lastOperation.description",
        description = "How far it is.",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct SubnetIsolationSpec {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultSpec,
    /// Provider status of the Infrastructure.
    pub infrastructure_provider_status: Option<RawExtension>,
    /// Region of the shoot's machines, as the provider calls the region.
    pub region: String,
    /// Credentials of the account.
    pub secret_ref: SecretReference,
    /// The zone, as the provider's physical ID: names may differ from account to account. A second zone needs
    /// a second object.
    #[serde(rename = "isolatedZoneID")]
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub isolated_zone_id: String,
}

/// Field of `status.providerStatus`: whether the provider has confirmed that the network of the zone is
/// closed (RZ-34). The network may be closed long before the operation succeeds, as an instance of the zone
/// hangs.
pub const NETWORK_CLOSED: &str = "networkClosed";

impl SubnetIsolation {
    /// Whether the last answer of the provider confirms that the network of the zone is closed.
    #[must_use]
    pub fn is_network_closed(&self) -> bool {
        let status = self.status.as_ref();
        let report = status.and_then(|status| status.provider_status.as_ref());
        let closed = report.and_then(|report| report.0.get(NETWORK_CLOSED)?.as_bool());
        closed.unwrap_or_default()
    }
}

extension_object!(
    SubnetIsolation,
    default_status,
    fn secret_ref(&self) -> Option<&SecretReference> {
        Some(&self.spec.secret_ref)
    }
);
