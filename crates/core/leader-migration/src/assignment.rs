//! The lock under which a manager runs a controller.

use std::fmt;

use super::{
    config::LeaderMigrationConfiguration,
    table::{KnownNames, Manager, ManagerTable},
};

/// The assignment of a controller in a manager. Exactly one of these applies to each controller, manager and
/// configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Assignment {
    /// The controller runs under the manager's main lock: no configuration names the controller.
    Main,
    /// The controller runs under the migration lock: the configuration assigns the controller to this manager
    /// or to any manager.
    Migrated,
    /// This manager must not run the controller: another manager does.
    Unowned,
}

impl fmt::Display for Assignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Main => "main",
            Self::Migrated => "migrated",
            Self::Unowned => "unowned",
        })
    }
}

impl ManagerTable {
    /// The assignment of `controller` in the manager `component`; `migration` is `None` where migration is
    /// off.
    ///
    /// A controller in the configuration is migrated or unowned. A controller outside the configuration is
    /// main in the controller's home, and unowned in a manager with the controller as guest. A controller
    /// without a home in the table is main in every manager.
    #[must_use]
    pub fn assignment(
        &self,
        controller: &str,
        component: &str,
        migration: Option<&LeaderMigrationConfiguration>,
    ) -> Assignment {
        let names = KnownNames {
            table: *self,
            own: None,
        };
        assign_by_entry(controller, component, &names, migration).unwrap_or_else(|| {
            let name = self.present_name(controller);
            let is_home = |manager: &&Manager| manager.is_home_of(name);
            let homes: Vec<_> = self.managers.iter().filter(is_home).collect();
            if homes.is_empty() || homes.iter().any(|home| home.component == component) {
                Assignment::Main
            } else {
                Assignment::Unowned
            }
        })
    }
}

/// The same for a manager with its own lists. A manager outside the table may have controllers with names
/// that the table assigns to a different manager.
pub(super) fn assign_in_manager(
    controller: &str,
    manager: &Manager,
    table: &ManagerTable,
    migration: Option<&LeaderMigrationConfiguration>,
) -> Assignment {
    let names = KnownNames::for_manager(table, manager);
    assign_by_entry(controller, manager.component, &names, migration).unwrap_or_else(|| {
        if manager.is_home_of(names.present_name(controller)) {
            Assignment::Main
        } else {
            Assignment::Unowned
        }
    })
}

fn assign_by_entry(
    controller: &str,
    component: &str,
    names: &KnownNames,
    migration: Option<&LeaderMigrationConfiguration>,
) -> Option<Assignment> {
    let entry = migration?.entry(controller, names)?;
    Some(if entry.is_for(component) {
        Assignment::Migrated
    } else {
        Assignment::Unowned
    })
}
