//! Nodes without a Machine: pure. A Node may have no Machine for a moment, such as between the registration
//! of the Node and the first write of the Node's name into the Machine.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use api::machine::Machine;
use k8s_openapi::api::core::v1::Node;
use kube::{Resource, ResourceExt};
use tokio::time::Instant;

use crate::{
    constants::NOT_MANAGED,
    machine::{node_name, provider_id},
};

/// Since when each Node has had no Machine, by uid. A restart of the process begins anew.
#[derive(Debug, Default)]
pub struct Strays(BTreeMap<String, Instant>);

/// The Nodes without a Machine.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StrayNodes {
    /// Without a Machine for long enough, by name.
    pub names: BTreeSet<String>,
    /// More Nodes have no Machine, but for a shorter time.
    pub is_undecided: bool,
}

impl Strays {
    /// Takes all Nodes and Machines as of `now`.
    pub fn record<'o>(
        &mut self,
        nodes: impl IntoIterator<Item = &'o Node>,
        machines: &[impl AsRef<Machine>],
        now: Instant,
        least: Duration,
    ) -> StrayNodes {
        let machines = || machines.iter().map(AsRef::as_ref);
        let names: BTreeSet<_> = machines().filter_map(node_name).collect();
        let ids: BTreeSet<_> = machines().filter_map(provider_id).collect();
        // An instance that no Machine has recorded yet has the Machine's name in most clouds.
        let own: BTreeSet<_> = machines().map(ResourceExt::name_any).collect();
        let has_machine = |node: &Node| {
            let name = node.name_any();
            let id = node.spec.as_ref().and_then(|spec| spec.provider_id.as_deref());
            names.contains(name.as_str()) || own.contains(&name) || id.is_some_and(|id| ids.contains(id))
        };
        let mut since = BTreeMap::new();
        let mut strays = StrayNodes::default();
        for node in nodes {
            let is_accepted = node
                .annotations()
                .get(NOT_MANAGED)
                .is_some_and(|value| value == "true");
            if is_accepted || node.meta().deletion_timestamp.is_some() || has_machine(node) {
                continue;
            }
            let uid = node.uid().unwrap_or_default();
            let first = self.0.get(&uid).copied().unwrap_or(now);
            since.insert(uid, first);
            if now.duration_since(first) >= least {
                strays.names.insert(node.name_any());
            } else {
                strays.is_undecided = true;
            }
        }
        self.0 = since;
        strays
    }
}

#[cfg(test)]
#[path = "strays_tests.rs"]
mod tests;
