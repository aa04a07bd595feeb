//! Leader migration as one manager takes part in it: a configuration held against the controllers of the manager.

use super::{
    assignment::{Assignment, assignment},
    config::LeaderMigrationConfiguration,
    losses,
    names::Manager,
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
        assignment(controller, self.manager.component, Some(&self.config))
    }

    /// Whether the manager runs anything under the migration lock. If not, it must not ask for the lock: it would only keep
    /// it from the manager that does (RK-05).
    #[must_use]
    pub fn takes_lock(&self) -> bool {
        self.manager
            .all()
            .any(|controller| self.assignment(controller) == Assignment::Migrated)
    }

    /// What this configuration takes away, one line each, for the log at the start and for `--print-leader-migration`.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let losses = losses::of(&self.config);
        let mut warnings: Vec<_> = losses.iter().map(|loss| loss.in_file(&self.origin)).collect();
        if !self.takes_lock() {
            warnings.push(format!(
                "{}: no controller of {} is migrated: it does not ask for the lock {:?}",
                self.origin, self.manager.component, self.config.leader_name
            ));
        }
        warnings
    }
}
