//! The controllers that a configuration takes away: entries by which a controller runs nowhere, or twice
//! beside Kubernetes' own manager (RK-34).
//!
//! These cases are warnings and not errors. A manager outside the table may have a controller that is not in
//! the table, and an administrator may switch a controller off on purpose.

use super::{
    config::{ANY_COMPONENT, ControllerLeader, LeaderMigrationConfiguration},
    error::{Problem, ProblemKind},
    kubernetes::KUBE_CONTROLLER_MANAGER,
    table::{KnownNames, Manager},
};

/// At most one warning for each entry with a loss, one for each former name, and one if entries for several
/// managers share the lock. `manager` is the present manager, in the table or not.
pub(super) fn list_losses(
    config: &LeaderMigrationConfiguration,
    manager: &Manager,
    names: &KnownNames,
) -> Vec<Problem> {
    let mut found = Vec::new();
    for (index, entry) in config.controller_leaders.iter().enumerate() {
        let told = [entry_loss(entry, manager, names), former_name(entry, names)];
        found.extend(told.into_iter().flatten().map(|(field, what)| Problem {
            kind: ProblemKind::Loss,
            line: entry.line,
            field: format!("controllerLeaders[{index}].{field}"),
            what,
        }));
    }
    found.extend(several_holders(config));
    found
}

/// The loss by an entry that migrates a controller to a manager with flags that switch the controller off;
/// `None` without such an entry.
pub(super) fn find_flag_loss(
    config: &LeaderMigrationConfiguration,
    manager: &Manager,
    names: &KnownNames,
    controller: &str,
) -> Option<Problem> {
    let entry = config.entry(controller, names)?;
    if !entry.is_for(manager.component) {
        return None;
    }
    let index = config
        .controller_leaders
        .iter()
        .position(|other| other == entry)?;
    Some(Problem {
        kind: ProblemKind::Loss,
        line: entry.line,
        field: format!("controllerLeaders[{index}]"),
        what: format!(
            "migrates {controller:?} to {:?}, but this process's own flags switch it off: it runs nowhere while this process \
             holds the lock",
            manager.component
        ),
    })
}

/// The field that causes the loss, and the effect. The process's own lists are authoritative: a process with
/// the name of a known manager need not have all controllers of that manager.
fn entry_loss(
    entry: &ControllerLeader,
    manager: &Manager,
    names: &KnownNames,
) -> Option<(&'static str, String)> {
    let ControllerLeader { name, component, .. } = entry;
    let present = names.present_name(name);
    let able: Vec<Manager> = names.managers().filter(|m| m.can_run(present)).collect();
    if able.is_empty() {
        let what = format!("{name:?} matches no controller of any known manager: nothing runs by this entry");
        return Some(("name", what));
    }
    if names.has_manager(component)
        && *component == KUBE_CONTROLLER_MANAGER.component
        && KUBE_CONTROLLER_MANAGER.guests.contains(&present)
    {
        let what = format!(
            "{component:?} runs {name:?} only up to Kubernetes 1.30: with a later one it runs nowhere while this entry stands"
        );
        return Some(("component", what));
    }
    if component == ANY_COMPONENT || able.iter().any(|manager| manager.component == component) {
        return None;
    }
    let able: Vec<_> = able.iter().map(|manager| manager.component).collect();
    let who = if component == manager.component || names.has_manager(component) {
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

/// A former name in a file that the kube-controller-manager may read. The kube-controller-manager compares
/// names as written, and would continue to run the controller under the main lock. A manager with this crate
/// treats the controller as migrated. (The built-in default is not in a file; Kubernetes has that default in
/// its own names.)
fn former_name(entry: &ControllerLeader, names: &KnownNames) -> Option<(&'static str, String)> {
    let present = names.present_name(&entry.name);
    let concerns_kubernetes = entry.line.is_some() && KUBE_CONTROLLER_MANAGER.can_run(present);
    (present != entry.name && concerns_kubernetes).then(|| {
        let what = format!(
            "{:?} is a former name: write {present:?}, the only one that the kube-controller-manager matches",
            entry.name
        );
        ("name", what)
    })
}

/// A lock has a single holder. Controllers under the lock that are not for the holder do not run until the
/// holder ends (RK-03).
fn several_holders(config: &LeaderMigrationConfiguration) -> Option<Problem> {
    let first = config.controller_leaders.first()?;
    let mut later = config.controller_leaders.iter().enumerate();
    let (index, other) = later.find(|(_, entry)| entry.component != first.component)?;
    Some(Problem {
        kind: ProblemKind::Loss,
        line: other.line,
        field: format!("controllerLeaders[{index}].component"),
        what: format!(
            "is {:?}, but {:?} is for {:?}: a lock has one holder, and what is not for it does not run as long as it holds \
             the lock; give all entries of a file the same component",
            other.component, first.name, first.component
        ),
    })
}
