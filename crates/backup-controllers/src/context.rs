//! What the controllers of backups are given by their host.

use std::time::Duration;

use runtime::{Garden, Seed, runner};

/// What the controllers of backups are given by their host.
#[derive(Clone)]
pub struct Context {
    /// The garden, with the identity of this seed: others may not write its BackupEntries.
    pub garden: Garden,
    /// The seed, with the right to copy credentials into its namespace `garden`.
    pub seed: Seed,
    /// The seed's name in the garden. Objects of other seeds are left alone.
    pub seed_name: String,
    /// How long the backups of a deleted shoot are kept. The same in every host, or it changes as the
    /// controllers move.
    pub deletion_grace: Duration,
    /// What the runner needs; its Events are in the garden.
    pub runner: runner::Settings,
}
