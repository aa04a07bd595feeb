//! The nodes of a shoot: the network of its pods, what its machines run at first, and the machines
//! themselves; each an extension object whose provider does the work. Only shoots with worker pools have
//! them.
//!
//! Nothing in them depends on the seed: what a machine runs names the shoot's API by its own name and trusts
//! carried authorities, so that a move changes no machine (I4).

mod cloud_controller_manager;
mod container_runtimes;
mod kubelet;
mod machine_image;
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

    /// The name by which nodes, and what runs on them, find the API: that for machines, or else that for
    /// users.
    pub(crate) fn api_for_nodes(&self) -> Result<&str> {
        self.names.apis().next().ok_or_else(|| {
            configuration_problem(
                "the shoot's API has no name: add spec.dns.internal to the Seed or spec.dns.domain to the Shoot",
            )
        })
    }
}
