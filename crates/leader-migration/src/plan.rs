//! Leader migration as one manager takes part in it: a configuration held against the controllers of the
//! manager.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::{
    assignment::{Assignment, of_manager},
    config::LeaderMigrationConfiguration,
    losses,
    names::{Manager, canonical},
};

/// What a manager does with a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The lock and its controllers.
    pub config: LeaderMigrationConfiguration,
    /// The manager that takes part.
    pub manager: Manager,
    /// Where the configuration is from: the path of its file.
    pub origin: String,
}

impl Migration {
    /// Where a controller of the manager belongs.
    #[must_use]
    pub fn assignment(&self, controller: &str) -> Assignment {
        of_manager(controller, &self.manager, Some(&self.config))
    }

    /// Whether the manager runs anything under the migration lock. If not, it must not ask for the lock: it
    /// would only keep it from the manager that does (RK-05).
    #[must_use]
    pub fn takes_lock(&self) -> bool {
        self.manager
            .all()
            .any(|controller| self.assignment(controller) == Assignment::Migrated)
    }

    /// Which controllers run under the lock, in a word: the same for every manager with the same list, in
    /// whichever order and by whichever of their names. In whose hands they are is not part of it, as that
    /// changes in the middle of a migration.
    #[must_use]
    pub fn digest(&self) -> String {
        let entries = self.config.controller_leaders.iter();
        let names: BTreeSet<_> = entries.map(|entry| canonical(&entry.name)).collect();
        let mut sum = Sha256::new();
        for name in names {
            sum.update(name);
            sum.update("\n");
        }
        sum.finalize()[..8]
            .iter()
            .fold(String::new(), |word, byte| format!("{word}{byte:02x}"))
    }

    /// What this configuration takes away, whatever else the flags of the manager say, one line each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let losses = losses::of(&self.config, &self.manager);
        losses.iter().map(|loss| loss.in_file(&self.origin)).collect()
    }

    /// What is lost by this controller being switched off in this process, if the configuration migrates it
    /// here.
    pub(super) fn switched_off(&self, controller: &str) -> Option<String> {
        let loss = losses::by_flags(&self.config, &self.manager, controller)?;
        Some(loss.in_file(&self.origin))
    }

    /// That this process does not ask for the migration lock, as it would run nothing under it.
    pub(super) fn no_part(&self) -> String {
        format!(
            "{}: no controller of {} is migrated: it does not ask for the lock {:?}",
            self.origin, self.manager.component, self.config.leader_name
        )
    }
}
