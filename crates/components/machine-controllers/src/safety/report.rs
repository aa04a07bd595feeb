//! Reports Nodes and instances without a Machine on the Worker. The gardenlet counts the condition towards
//! the condition of the same type of the Shoot.

use std::collections::BTreeSet;

use api::{
    constants::condition::{EVERY_NODE_READY, MACHINE_MISSING, MACHINES_COMPLETE},
    extensions::Worker,
    meta::{Condition, ConditionStatus, find_condition},
};
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{
    Result,
    bounds::some_of,
    client::{Cluster as _, Seed, apply::FieldManager},
    clock,
    controller::conditions,
    error::Explain as _,
};

use crate::{constants::NOT_MANAGED, driver::ListedInstance};

/// Nodes or instances that a sentence names. More would not fit into a condition.
const NAMED: usize = 5;

/// Nodes and instances that have no Machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unmanaged {
    /// Names of Nodes.
    pub nodes: BTreeSet<String>,
    /// Instances that are kept.
    pub instances: BTreeSet<ListedInstance>,
}

impl Unmanaged {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The findings and the remedy.
    fn describe(&self) -> String {
        let mut sentences = Vec::new();
        if !self.nodes.is_empty() {
            let names: Vec<_> = self.nodes.iter().collect();
            sentences.push(format!(
                "Nodes without a Machine are neither drained nor replaced: {}; end each instance in the cloud if the instance \
                 still runs, then delete the Node, or accept the Node by its annotation {NOT_MANAGED}=true",
                some_of(&names, NAMED)
            ));
        }
        if !self.instances.is_empty() {
            let names = self.instances.iter();
            let names: Vec<_> = names
                .map(|found| format!("{} ({})", found.provider_id, found.machine_name))
                .collect();
            sentences.push(format!(
                "instances without a Machine are kept, as they were there before this machine manager: {}; delete each \
                 instance in the cloud that is really left over",
                some_of(&names, NAMED)
            ));
        }
        sentences.join("; ")
    }

    /// Puts the report into the conditions of a Worker. A condition of a different writer is replaced by a
    /// report only, and never by the end of a report.
    fn merge_into(&self, list: &mut Vec<Condition>) {
        let own = [MACHINE_MISSING, MACHINES_COMPLETE];
        let is_own = find_condition(list, EVERY_NODE_READY)
            .is_some_and(|condition| own.contains(&condition.reason.as_str()));
        let (status, reason, message) = match self.is_empty() {
            false => (ConditionStatus::False, MACHINE_MISSING, self.describe()),
            true if is_own => (
                ConditionStatus::True,
                MACHINES_COMPLETE,
                "all Nodes and instances have a Machine".to_owned(),
            ),
            true => return,
        };
        let message = format!("{message}.");
        Condition::new(EVERY_NODE_READY, status, reason, &message, clock::now_k8s()).merge_into(list);
    }
}

/// Writes the report into the Workers of the namespace. Without a right to Workers, or without a Worker, the
/// report is dropped: the Events of the machine classes remain.
pub async fn write(seed: &Seed, namespace: &str, manager: FieldManager, report: &Unmanaged) -> Result<()> {
    let workers: Api<Worker> = seed.namespaced(namespace);
    let names = workers.list_metadata(&ListParams::default()).await;
    for worker in names.context("could not list Workers")? {
        let change = |list: &mut Vec<Condition>| report.merge_into(list);
        conditions::change(manager, &workers, &worker.name_any(), "conditions", change).await?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
