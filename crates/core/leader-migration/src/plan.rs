//! A manager's part in leader migration: a configuration compared with the controllers of the manager.

use std::collections::BTreeSet;

use lease::LockTerms;
use sha2::{Digest, Sha256};

use super::{
    assignment::{Assignment, assign_in_manager},
    config::LeaderMigrationConfiguration,
    losses,
    table::{KnownNames, Manager, ManagerTable},
};

/// The part of a process that stops while the migration lock is held for a different list of controllers, as
/// in a rollout that changes the list. The author of a manager chooses.
///
/// In both cases the process ends at once if the holder's list has a controller that the process runs under
/// the main lock: the controller would run twice. A holder of an earlier release does not publish the list,
/// and counts as such a holder. A holder without a sign of life is waited for as for any holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDisagreement {
    /// The process ends with [`lease::Lost::Disagrees`].
    #[default]
    EndProcess,
    /// The migrated controllers of the process do not run until the holder ends. The controllers under the
    /// main lock run. So a rollout that adds an entry completes. The manager that runs the controller under
    /// the main lock is rolled first.
    StopMigrated,
}

/// A configuration, applied to a manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migration {
    /// The lock and the controllers under the lock.
    pub config: LeaderMigrationConfiguration,
    /// The manager that takes part.
    pub manager: Manager,
    /// The names that the configuration is compared with.
    pub table: ManagerTable,
    /// The origin of the configuration: the path of the file.
    pub origin: String,
}

impl Migration {
    /// The assignment of a controller of the manager.
    #[must_use]
    pub fn assignment(&self, controller: &str) -> Assignment {
        assign_in_manager(controller, &self.manager, &self.table, Some(&self.config))
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
        let mut sum = Sha256::new();
        for name in self.present_names() {
            sum.update(name);
            sum.update("\n");
        }
        sum.finalize()[..8]
            .iter()
            .fold(String::new(), |word, byte| format!("{word}{byte:02x}"))
    }

    /// The terms of the migration lock: the digest and the list. A process of this manager that runs
    /// `in_main` under the main lock cannot wait beside a holder of the migration lock with such a
    /// controller.
    #[must_use]
    pub fn terms(&self, in_main: &[&str], on_disagreement: OnDisagreement) -> LockTerms {
        LockTerms::new(self.digest())
            .with_entries(self.present_names())
            .with_exclusive(in_main.iter().copied())
            .waiting(on_disagreement == OnDisagreement::StopMigrated)
    }

    /// The controllers that this configuration takes away, independent of the manager's other flags, one line
    /// each.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let losses = losses::list_losses(&self.config, &self.manager, &self.names());
        losses.iter().map(|loss| loss.in_file(&self.origin)).collect()
    }

    /// The warning for a controller that is switched off in this process, if the configuration migrates the
    /// controller here.
    pub(super) fn switched_off(&self, controller: &str) -> Option<String> {
        let loss = losses::find_flag_loss(&self.config, &self.manager, &self.names(), controller)?;
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

    /// The names that this process compares the configuration with.
    fn names(&self) -> KnownNames {
        KnownNames::for_manager(&self.table, &self.manager)
    }

    /// The present names of the controllers under the lock.
    fn present_names(&self) -> BTreeSet<&str> {
        let names = self.names();
        let entries = self.config.controller_leaders.iter();
        entries.map(|entry| names.present_name(&entry.name)).collect()
    }
}
