//! A manager's part in leader migration: a configuration compared with the controllers of the manager.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::{
    assignment::{Assignment, of_manager},
    config::LeaderMigrationConfiguration,
    losses,
    names::{Manager, canonical},
};

/// A configuration, applied to a manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The lock and the controllers under the lock.
    pub config: LeaderMigrationConfiguration,
    /// The manager that takes part.
    pub manager: Manager,
    /// The origin of the configuration: the path of the file.
    pub origin: String,
}

impl Migration {
    /// The assignment of a controller of the manager.
    #[must_use]
    pub fn assignment(&self, controller: &str) -> Assignment {
        of_manager(controller, &self.manager, Some(&self.config))
    }

    /// Whether the manager runs any controller under the migration lock. If not, the manager must not request
    /// the lock, and so leaves the lock to the manager that does (RK-05).
    #[must_use]
    pub fn takes_lock(&self) -> bool {
        self.manager
            .all()
            .any(|controller| self.assignment(controller) == Assignment::Migrated)
    }

    /// A digest of the controllers under the lock: equal for every manager with the same list, in any order
    /// and by any of the controllers' names. The components are not part of the digest, because a component
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

    /// The controllers that this configuration takes away, independent of the manager's other flags, one line
    /// each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let losses = losses::of(&self.config, &self.manager);
        losses.iter().map(|loss| loss.in_file(&self.origin)).collect()
    }

    /// The warning for a controller that is switched off in this process, if the configuration migrates the
    /// controller here.
    pub(super) fn switched_off(&self, controller: &str) -> Option<String> {
        let loss = losses::by_flags(&self.config, &self.manager, controller)?;
        Some(loss.in_file(&self.origin))
    }

    /// The message that this process does not request the migration lock, because no controller of this
    /// process is migrated.
    pub(super) fn no_part(&self) -> String {
        format!(
            "{}: no controller of {} is migrated: it does not ask for the lock {:?}",
            self.origin, self.manager.component, self.config.leader_name
        )
    }
}
