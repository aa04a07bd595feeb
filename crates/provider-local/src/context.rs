//! What the controllers of this process are made of.

use std::time::Duration;

use extension::OwnerChecks;
use runtime::{Connection, Seed, runner::Settings};

use crate::control_plane::cloud_controller_manager;

/// What controllers are made of.
#[derive(Clone)]
pub struct Context {
    /// The seed with the objects.
    pub seed: Seed,
    /// Who may act for which shoot.
    pub owners: OwnerChecks,
    /// How each of them runs.
    pub settings: Settings,
    /// Of the cloud-controller-manager.
    pub cloud_controller_manager: cloud_controller_manager::Settings,
    /// Image of the machine-controller-manager, with its tag.
    pub machine_controller_manager_image: String,
    /// Image of the agent of the network on machines, with its tag.
    pub network_image: String,
    /// What guests need, where one may run.
    pub guests: Option<Guests>,
}

/// What guests need besides what this provider's own controllers have.
#[derive(Clone)]
pub struct Guests {
    /// The garden, with the identity of the seed.
    pub garden: Connection,
    /// The seed's name in the garden.
    pub seed_name: String,
    /// How long the backups of a deleted shoot are kept.
    pub deletion_grace: Duration,
}
