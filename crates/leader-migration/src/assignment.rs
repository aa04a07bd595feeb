//! The lock under which a manager runs a controller.

use std::fmt;

use super::{
    config::LeaderMigrationConfiguration,
    names::{self, Manager},
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

/// The assignment of `controller` in the manager `component`; `migration` is `None` where migration is off.
///
/// A controller in the configuration is migrated or unowned. A controller outside the configuration is main
/// in the controller's home, and unowned in a manager with the controller as guest. In an unknown manager the
/// controller is main, as long as no known manager is the home.
#[must_use]
pub fn assignment(
    controller: &str,
    component: &str,
    migration: Option<&LeaderMigrationConfiguration>,
) -> Assignment {
    by_entry(controller, component, migration).unwrap_or_else(|| match names::home(controller) {
        Some(home) if home.component != component => Assignment::Unowned,
        _ => Assignment::Main,
    })
}

/// The same for a manager with its own lists. A manager outside this project may have controllers with names
/// that the table assigns to another manager.
pub(super) fn of_manager(
    controller: &str,
    manager: &Manager,
    migration: Option<&LeaderMigrationConfiguration>,
) -> Assignment {
    by_entry(controller, manager.component, migration).unwrap_or_else(|| {
        if manager.is_home_of(controller) {
            Assignment::Main
        } else {
            Assignment::Unowned
        }
    })
}

fn by_entry(
    controller: &str,
    component: &str,
    migration: Option<&LeaderMigrationConfiguration>,
) -> Option<Assignment> {
    let entry = migration?.entry(controller)?;
    Some(if entry.is_for(component) {
        Assignment::Migrated
    } else {
        Assignment::Unowned
    })
}
