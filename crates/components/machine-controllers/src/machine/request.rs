//! A user of the shoot has no access to Machines, and requests the deletion of a Machine on the Node.

use api::machine::Machine;
use k8s_openapi::api::core::v1::Node;
use kube::{ResourceExt, runtime::reflector::ObjectRef};
use runtime::Result;
use tracing::info;

use super::{Machines, deletion::node_belongs_to, identity::node_name};
use crate::{constants::TRIGGER_DELETION, removal};

impl Machines {
    /// Deletes the Machine if the Node has the annotation for the deletion, and returns whether the Machine
    /// was deleted. The Node is read live, as the annotation may have been removed since the last event of
    /// the watch.
    pub(super) async fn delete_on_request(&self, machine: &Machine) -> Result<bool> {
        let Some(name) = node_name(machine) else {
            return Ok(false);
        };
        let asks = |node: &Node| requests_deletion(node) && node_belongs_to(node, machine);
        // Before the first listing of Nodes the cache is empty; the events of the Nodes come later.
        let seen = self.nodes.get(&ObjectRef::new(name)).ok().flatten();
        if !seen.is_some_and(|node| asks(&node))
            || !self.reach.read_node(name).await?.is_some_and(|node| asks(&node))
        {
            return Ok(false);
        }
        info!(
            machine = machine.name_any(),
            node = name,
            "a user asks for the deletion of the machine"
        );
        let report =
            format!("the Machine is deleted, because Node {name} has the annotation {TRIGGER_DELETION}=true");
        self.events.normal(machine, "DeletionRequested", &report).await;
        removal::delete(&self.machines_api(), machine).await?;
        Ok(true)
    }
}

fn requests_deletion(node: &Node) -> bool {
    node.annotations()
        .get(TRIGGER_DELETION)
        .is_some_and(|value| value == "true")
}
