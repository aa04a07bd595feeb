//! Settings of a Shoot for the provider.

use super::{Worker, WorkersSettings};
use crate::derive::{Deserialize, KubeSchema, PRINTABLE, PackedExtension, Serialize, skip_serializing_none};

/// Type and settings of the provider, and worker pools.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
// As upstream. A shoot that loses the last pool would lose the nodes for all pods, the network and the DNS.
#[x_kube(validation = (
    "(has(oldSelf.workers) && size(oldSelf.workers) > 0) == (has(self.workers) && size(self.workers) > 0)",
    "the last worker pool cannot be removed, nor pools be added to a shoot that was made without: give pools minimum 0 and maximum 0 to be without machines, or make another Shoot"
))]
// More nodes than this no cluster bears, and each is an object in the seed's own etcd.
#[x_kube(validation = (
    "!has(self.workers) || self.workers.map(pool, pool.maximum).sum() <= 5000",
    "maximum of all worker pools together must be 5000 at most, which is as many nodes as Kubernetes bears"
))]
pub struct Provider {
    /// Type of the provider, equal in the extensions and the CloudProfile.
    #[schemars(length(min = 1, max = 253), regex(pattern = PRINTABLE))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub type_: String,
    /// The provider's own configuration of the control plane.
    pub control_plane_config: Option<PackedExtension>,
    /// The provider's own configuration of the infrastructure.
    pub infrastructure_config: Option<PackedExtension>,
    /// Pools of nodes; none at all makes the shoot workerless.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    // Pools are identified by name, so that rules can compare the old and the new value of a pool.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub workers: Vec<Worker>,
    /// Settings for all worker pools.
    pub workers_settings: Option<WorkersSettings>,
}
