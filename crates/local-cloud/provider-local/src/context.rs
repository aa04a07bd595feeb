//! The inputs of the controllers of this process.

use std::time::Duration;

use extension::OwnerChecks;
use runtime::{
    client::{Connection, Seed},
    controller::runner::Settings,
};

use crate::control_plane::cloud_controller_manager;

/// The inputs of controllers.
#[derive(Clone)]
pub struct Context {
    /// The seed with the objects.
    pub seed: Seed,
    /// The owner checks.
    pub owners: OwnerChecks,
    /// The settings of each runner.
    pub settings: Settings,
    /// Settings of the cloud-controller-manager.
    pub cloud_controller_manager: cloud_controller_manager::Settings,
    /// Image of the machine-controller-manager, with tag.
    pub machine_controller_manager_image: String,
    /// Image of the network agent on machines, with tag.
    pub network_image: String,
    /// The inputs of guests, if a guest may run. A guest is a controller of the gardenlet that a leader
    /// migration hands over to this process.
    pub guests: Option<Guests>,
}

/// The inputs that guests need in addition to the inputs of this provider's own controllers.
#[derive(Clone)]
pub struct Guests {
    /// The garden, with the identity of the seed.
    pub garden: Connection,
    /// The seed's name in the garden.
    pub seed_name: String,
    /// Retention time of the backups of a deleted shoot.
    pub deletion_grace: Duration,
}
