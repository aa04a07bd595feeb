//! Under which lock a manager runs a controller.

use std::fmt;

use super::{
    config::LeaderMigrationConfiguration,
    names::{self, Manager},
};

/// Where a controller of a manager belongs. Exactly one of these holds for each controller, manager and
/// configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Assignment {
    /// It runs under the manager's own lock: no configuration names it.
    Main,
    /// It runs under the migration lock: the configuration gives it to this manager or to any.
    Migrated,
    /// This manager must not run it: another one does.
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

/// Where `controller` belongs in the manager `component`; `migration` is none where migration is off.
///
/// A controller that the configuration names is migrated or unowned. One that it does not name is main in its
/// home (and in a manager that nobody knows, as long as the controller has no home elsewhere), and unowned
/// where it is only a guest.
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

/// The same for a manager that says itself what is at home in it: a manager of one's own may have controllers
/// whose names the table of known managers gives to another one.
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
