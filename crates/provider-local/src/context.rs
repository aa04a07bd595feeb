//! What the controllers of this process are made of.

use std::time::Duration;

use runtime::{Connection, Seed, runner::Settings};

/// What controllers are made of.
#[derive(Clone)]
pub struct Context {
    /// The seed with the objects.
    pub seed: Seed,
    /// How each of them runs.
    pub settings: Settings,
    /// Image of the cloud-controller-manager, with its tag.
    pub cloud_controller_manager_image: String,
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
