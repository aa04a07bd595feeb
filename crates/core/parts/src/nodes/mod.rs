//! The nodes of a shoot: the pod network, the first configuration of machines, and the machines. Each is an
//! extension object of a provider. Only shoots with worker pools have these objects.
//!
//! The objects do not depend on the seed: a machine uses the name of the shoot's API and trusts carried
//! authorities. So a move changes no machine (I4).
//!
//! | file | content |
//! |---|---|
//! | `workers` | Worker: the machines of all pools; `pools` converts the pools of the Shoot |
//! | `operating_system_config` | the first configuration of machines; `kubelet`: settings of the kubelet |
//! | `machine_image` | the image of a pool, checked against the CloudProfile |
//! | `network` | the network between pods; `room`: whether all pools have room in the pods network |
//! | `container_runtimes` | further container runtimes of a pool |
//! | `rights` | rights of nodes and of the machine-controller-manager in the shoot |
//! | `cloud_controller_manager` | whether the taint of new Nodes is removed |
//! | `machine` | Machine objects in the source of a move |
//! | `stale` | leftovers of pools that the Shoot has no more |
//! | `forced_machines` | machines of a forced deletion, and the report of instances left behind |
//! | `machines_lost_by_force` | the same in the middle of a move, by the ShootState |

mod cloud_controller_manager;
mod container_runtimes;
pub(crate) mod forced_machines;
mod kubelet;
pub(crate) mod machine;
mod machine_image;
pub(crate) mod machines_lost_by_force;
mod network;
mod operating_system_config;
mod pools;
mod rights;
mod room;
mod stale;
mod workers;

pub use container_runtimes::ContainerRuntimes;
pub(crate) use kubelet::dns as cluster_dns;
pub use network::Network;
pub use operating_system_config::OperatingSystemConfigs;
pub use rights::NodeRights;
pub(crate) use room::check as check_room;
pub use stale::NodeExtensions;
pub use workers::Workers;

use runtime::Result;

use crate::{Facts, configuration_problem};

impl Facts {
    /// Whether the shoot has nodes.
    #[must_use]
    pub fn has_workers(&self) -> bool {
        !self.shoot.spec.provider.workers.is_empty()
    }

    /// The API's name for nodes and their pods: the internal name, or the external name without an internal
    /// name.
    pub(crate) fn api_for_nodes(&self) -> Result<&str> {
        self.names.apis().next().ok_or_else(|| {
            configuration_problem(
                "the shoot's API has no name: add spec.dns.internal to the Seed or spec.dns.domain to the Shoot",
            )
        })
    }
}
