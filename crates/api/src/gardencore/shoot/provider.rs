//! What a Shoot says to its provider.

use super::{Worker, WorkersSettings};
use crate::derive::{Deserialize, KubeSchema, RawExtension, Serialize, skip_serializing_none};

/// What the provider needs.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct Provider {
    /// Its type.
    #[schemars(length(min = 1, max = 253))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub type_: String,
    /// Its own configuration of the control plane.
    pub control_plane_config: Option<RawExtension>,
    /// Its own configuration of the infrastructure.
    pub infrastructure_config: Option<RawExtension>,
    /// Pools of nodes; none at all makes the shoot workerless.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    // Pools are told apart by name, so that rules about an old and a new value can tell which belong together.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub workers: Vec<Worker>,
    /// Settings for all pools.
    pub workers_settings: Option<WorkersSettings>,
}
