//! What a configuration takes away: entries by which a controller runs nowhere (RK-34).
//!
//! These are warnings and not errors, as a manager that is not of this suite may have a controller that is not in its table,
//! and as a controller may be switched off on purpose.

use super::{
    config::{ANY_COMPONENT, ControllerLeader, LeaderMigrationConfiguration},
    error::Problem,
    names::{self, KNOWN_MANAGERS, Manager},
};

/// One warning for each entry that matches nothing, and one if entries for several managers are under the one lock.
pub(super) fn of(config: &LeaderMigrationConfiguration) -> Vec<Problem> {
    let entries = config.controller_leaders.iter().enumerate();
    let mut found: Vec<Problem> = entries
        .filter_map(|(index, entry)| {
            let (field, what) = of_entry(entry)?;
            Some(Problem {
                line: entry.line,
                field: format!("controllerLeaders[{index}].{field}"),
                what,
            })
        })
        .collect();
    found.extend(several_holders(config));
    found
}

/// The field that is to blame, and what it does.
fn of_entry(entry: &ControllerLeader) -> Option<(&'static str, String)> {
    let ControllerLeader { name, component, .. } = entry;
    let able: Vec<&Manager> = KNOWN_MANAGERS.iter().filter(|m| m.can_run(name)).collect();
    if able.is_empty() {
        let what = format!("{name:?} matches no controller of any known manager: nothing runs by this entry");
        return Some(("name", what));
    }
    if component == ANY_COMPONENT || able.iter().any(|manager| manager.component == component) {
        return None;
    }
    let able: Vec<_> = able.iter().map(|manager| manager.component).collect();
    let who = if names::known(component).is_some() {
        format!("{component:?} has no controller {name:?}")
    } else {
        format!("{component:?} is no known manager")
    };
    let what = format!(
        "{who}: {name:?} runs nowhere while this entry stands; it can run in {}",
        able.join(" or ")
    );
    Some(("component", what))
}

/// A lock has one holder. Controllers under it that are not for the holder do not run until it goes (RK-03).
fn several_holders(config: &LeaderMigrationConfiguration) -> Option<Problem> {
    let first = config.controller_leaders.first()?;
    let mut later = config.controller_leaders.iter().enumerate();
    let (index, other) = later.find(|(_, entry)| entry.component != first.component)?;
    Some(Problem {
        line: other.line,
        field: format!("controllerLeaders[{index}].component"),
        what: format!(
            "is {:?}, but {:?} is for {:?}: a lock has one holder, and what is not for it does not run as long as it holds \
             the lock; give all entries of a file the same component",
            other.component, first.name, first.component
        ),
    })
}
