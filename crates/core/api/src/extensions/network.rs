//! `Network`: the network of a shoot's pods.

use super::{DefaultSpec, DefaultStatus, object::extension_object};
use crate::{
    derive::{CustomResource, Deserialize, JsonSchema, KubeSchema, Serialize},
    gardencore::shoot::IPFamily,
};

/// The wanted network of a shoot.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "extensions.gardener.cloud",
    version = "v1alpha1",
    kind = "Network",
    namespaced,
    status = "NetworkStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "The network of a shoot's pods.",
    printcolumn(
        name = "Type",
        type_ = "string",
        json_path = ".spec.type",
        description = "The provider."
    ),
    printcolumn(
        name = "Pod CIDR",
        type_ = "string",
        json_path = ".spec.podCIDR",
        description = "Of the pods."
    ),
    printcolumn(
        name = "Service CIDR",
        type_ = "string",
        json_path = ".spec.serviceCIDR",
        description = "Of the services."
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
pub struct NetworkSpec {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultSpec,
    /// Range of addresses of pods, in CIDR notation.
    #[serde(rename = "podCIDR")]
    #[schemars(length(min = 1, max = 128))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub pod_cidr: String,
    /// Range of addresses of services, in CIDR notation.
    #[serde(rename = "serviceCIDR")]
    #[schemars(length(min = 1, max = 128))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub service_cidr: String,
    /// IP families of the network: `IPv4` or `IPv6`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_families: Vec<IPFamily>,
}

/// Observed state of the network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetworkStatus {
    /// Fields of every extension kind.
    #[serde(flatten)]
    pub default: DefaultStatus,
    /// IP families that the network has: `IPv4` or `IPv6`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ip_families: Vec<IPFamily>,
}

extension_object!(Network, flat_status);
