//! The nodes of a shoot: the pod network, the first configuration of machines, and the machines. Each is an
//! extension object of a provider. Only shoots with worker pools have these objects.
//!
//! The objects do not depend on the seed: a machine uses the name of the shoot's API and trusts carried
//! authorities. So a move changes no machine (I4).

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
