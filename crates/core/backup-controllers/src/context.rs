//! The clients and settings that the host of the backup controllers provides.

use std::time::Duration;

use runtime::{
    bounds::SharePercent,
    client::{Garden, Seed},
    controller::runner,
};

/// The clients and settings that the host of the backup controllers provides.
#[derive(Clone)]
pub struct Context {
    /// The garden, with the identity of this seed: other identities may not write the seed's BackupEntries.
    pub garden: Garden,
    /// The seed, with the right to copy credentials into its namespace `garden`.
    pub seed: Seed,
    /// The seed's name in the garden. Objects of other seeds are left alone.
    pub seed_name: String,
    /// How long the backups of a deleted shoot are kept. Must be equal in every host, or the time changes
    /// when the controllers move between hosts.
    pub deletion_grace: Duration,
    /// The part of the workers that the BackupEntries of a project may hold beside a second project.
    pub project_share: SharePercent,
    /// Settings of the runner; its Events are written to the garden.
    pub runner: runner::Settings,
}
