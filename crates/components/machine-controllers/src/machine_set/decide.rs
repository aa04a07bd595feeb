//! Decides about the Machines that a set creates and deletes: pure.

use std::cmp::Reverse;

use api::machine::Machine;
use kube::{Resource, ResourceExt};

use crate::{constants::PRIORITY, machine::node_name, phase::Phase};

/// Most Machines that are created or deleted in a step: the controller observes the result before the next
/// step.
pub const BURST: usize = 50;
/// The priority of a Machine that names none.
const MIDDLE: i64 = 3;

/// The actions of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Machines that failed and are replaced.
    pub replace: Vec<String>,
    /// Machines that are too many.
    pub surplus: Vec<String>,
    /// Number of missing Machines.
    pub create: usize,
}

impl Plan {
    /// Whether the plan has no action.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The actions of a set with so many replicas. Machines in deletion do not count.
pub fn plan_changes(replicas: usize, machines: &[&Machine]) -> Plan {
    let (failed, staying) = split_failed(machines);
    Plan {
        replace: failed
            .into_iter()
            .map(ResourceExt::name_any)
            .take(BURST)
            .collect(),
        create: replicas.saturating_sub(staying.len()).min(BURST),
        surplus: surplus_machines(replicas, staying)
            .take(BURST)
            .map(ResourceExt::name_any)
            .collect(),
    }
}

/// All Machines that a set with so many replicas deletes, also those beyond the first burst.
pub fn outgoing_machines<'m>(replicas: usize, machines: &[&'m Machine]) -> Vec<&'m Machine> {
    let (failed, staying) = split_failed(machines);
    failed
        .into_iter()
        .chain(surplus_machines(replicas, staying))
        .collect()
}

/// The Machines that failed and those that did not, without those that are being deleted.
fn split_failed<'m>(machines: &[&'m Machine]) -> (Vec<&'m Machine>, Vec<&'m Machine>) {
    machines
        .iter()
        .filter(|machine| machine.meta().deletion_timestamp.is_none())
        .partition(|machine| Phase::from_machine(machine) == Phase::Failed)
}

fn surplus_machines(replicas: usize, mut staying: Vec<&Machine>) -> impl Iterator<Item = &Machine> {
    let count = staying.len().saturating_sub(replicas);
    if count > 0 {
        staying.sort_by_cached_key(|machine| deletion_order(machine));
    }
    staying.into_iter().take(count)
}

/// The order in which surplus Machines are deleted: by priority, then the least useful phase, then Machines
/// without Node, then the newest.
fn deletion_order(machine: &Machine) -> impl Ord + use<> {
    let priority = machine
        .annotations()
        .get(PRIORITY)
        .and_then(|text| text.parse().ok())
        .unwrap_or(MIDDLE);
    let made = machine.creation_timestamp().map(|time| time.0);
    (
        priority,
        Phase::from_machine(machine),
        node_name(machine).is_some(),
        Reverse(made),
        machine.name_any(),
    )
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
