//! Decides that the time of a Machine is over. This decision costs a Node its pods. So the decision is taken
//! on live reads of the API servers, for one Machine at a time, and for few Machines of a deployment at once.
//! When many Nodes are unhealthy together, the cause is rarely the Nodes.

use std::{collections::BTreeMap, sync::Arc};

use api::machine::{Machine, MachineSet};
use kube::{Api, Resource, ResourceExt, api::ListParams};
use runtime::{Cluster as _, Next, Result, error::Explain as _};
use tracing::warn;

use super::{
    Machines,
    bounds::Bounds,
    health::{HealthInputs, Verdict, judge},
    identity::node_name,
    status::{self, Doing, MachineReport, State},
};
use crate::phase::Phase;

/// The error code of a Machine that took too long.
const TOO_LATE: &str = "DeadlineExceeded";

impl Machines {
    /// Marks the Machine as failed, unless the reason no longer holds or different Machines have to be
    /// replaced first.
    pub(super) async fn expire(&self, seen: &Machine, bounds: &Bounds, why: &str) -> Result<Next> {
        let again = Next::After(self.timing.look_every);
        // Many Machines may expire at once: the cache already answers for most of these Machines.
        if Phase::from_status(seen) == Some(Phase::Unknown) {
            let (known, families) = (self.known.all()?, self.families().await?);
            if replaced(seen, &families, known.iter().map(Arc::as_ref)) >= self.timing.replaced_at_once {
                self.tell_of_others(seen, why).await?;
                return Ok(again);
            }
        }
        let _one_at_a_time = self.judging.lock().await;
        let name = seen.name_any();
        let read = self.machines_api().get_opt(&name).await;
        let Some(machine) = read.context(format_args!("could not read Machine {name}"))? else {
            return Ok(Next::Change);
        };
        let phase = Phase::from_status(&machine);
        if machine.uid() != seen.uid()
            || phase != Phase::from_status(seen)
            || machine.meta().deletion_timestamp.is_some()
        {
            return Ok(again);
        }
        let node = match node_name(&machine) {
            Some(node) => self.reach.node(node).await?,
            None => None,
        };
        let known = HealthInputs {
            phase,
            lasts: status::lasts(&machine).min(self.reach.answers_for().await?),
            node: node.as_ref(),
        };
        let Verdict::Expired(_) = judge(&known, bounds) else {
            return Ok(again);
        };
        let lost = phase == Some(Phase::Unknown);
        if lost && self.enough_are_replaced(&machine).await? {
            self.tell_of_others(&machine, why).await?;
            return Ok(again);
        }
        let doing = if lost { Doing::HealthCheck } else { Doing::Create };
        warn!(machine = name, why, "a machine failed");
        let mut told = MachineReport::new(Phase::Failed, doing, State::Failed, why);
        told.code = Some(TOO_LATE.into());
        self.tell(&machine, &told).await?;
        self.events.warning(&machine, "MachineFailed", why).await;
        Ok(Next::Change)
    }

    async fn tell_of_others(&self, machine: &Machine, why: &str) -> Result<()> {
        let waits = format!("{why}; it stays until others of its deployment are there again");
        let told = MachineReport::new(Phase::Unknown, Doing::HealthCheck, State::Processing, waits);
        self.tell(machine, &told).await
    }

    /// Whether the allowed number of Machines of the deployment are being replaced.
    async fn enough_are_replaced(&self, machine: &Machine) -> Result<bool> {
        let families = self.families().await?;
        let live = self.machines_api().list(&ListParams::default()).await;
        let live = live.context("could not list Machines")?;
        Ok(replaced(machine, &families, live.items.iter()) >= self.timing.replaced_at_once)
    }

    async fn families(&self) -> Result<BTreeMap<String, String>> {
        let sets: Api<MachineSet> = self.seed.namespaced(&self.namespace);
        let sets = sets.list(&ListParams::default()).await;
        Ok(families(&sets.context("could not list MachineSets")?.items))
    }
}

/// The deployment (or the set, if there is no deployment) of the Machines of each set, by the name of the
/// set.
fn families(sets: &[MachineSet]) -> BTreeMap<String, String> {
    let family = |set: &MachineSet| owner(set, "MachineDeployment").unwrap_or_else(|| set.name_any());
    sets.iter().map(|set| (set.name_any(), family(set))).collect()
}

fn owner<K: Resource>(object: &K, kind: &str) -> Option<String> {
    let owners = object.meta().owner_references.as_ref()?;
    let owner = owners.iter().find(|owner| owner.kind == kind)?;
    Some(owner.name.clone())
}

/// Counts the Machines of the same family that are neither running nor unhealthy, so being created or
/// deleted.
fn replaced<'a>(
    machine: &Machine,
    families: &BTreeMap<String, String>,
    all: impl Iterator<Item = &'a Machine>,
) -> usize {
    let family = |machine: &Machine| {
        let set = owner(machine, "MachineSet")?;
        Some(families.get(&set).cloned().unwrap_or(set))
    };
    let (own, name) = (family(machine), machine.name_any());
    all.filter(|other| other.name_any() != name && family(other) == own)
        .filter(|other| {
            // A Machine without a reported phase was restored, or is still to be created.
            let is_reported = Phase::from_status(other).is_some();
            is_reported && !matches!(Phase::from_machine(other), Phase::Running | Phase::Unknown)
                || !is_reported && super::provider_id(other).is_none()
        })
        .count()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn machine(name: &str, set: &str, phase: &str, deleted: bool) -> Machine {
        let deletion = deleted.then_some("2026-01-01T00:00:00Z");
        serde_json::from_value(json!({
            "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine",
            "metadata": {"name": name, "deletionTimestamp": deletion, "ownerReferences": [
                {"apiVersion": "v", "kind": "MachineSet", "name": set, "uid": "u"}]},
            "spec": {},
            "status": {"currentStatus": {"phase": phase}},
        }))
        .unwrap()
    }

    #[test]
    fn those_of_the_same_deployment_that_come_or_go_are_counted() {
        let families = BTreeMap::from([
            ("a-old".to_owned(), "a".to_owned()),
            ("a-new".to_owned(), "a".to_owned()),
            ("b-new".to_owned(), "b".to_owned()),
        ]);
        let all = [
            machine("self", "a-old", "Unknown", false),
            machine("well", "a-old", "Running", false),
            machine("ill", "a-old", "Unknown", false),
            machine("failed", "a-old", "Failed", false),
            machine("going", "a-old", "Running", true),
            machine("coming", "a-new", "Pending", false),
            machine("refused", "a-new", "CrashLoopBackOff", false),
            machine("silent", "a-new", "", false),
            machine("foreign", "b-new", "Failed", false),
        ];
        // Not counted: the Machine under test, running or unhealthy Machines, and Machines of a different
        // deployment.
        assert_eq!(replaced(&all[0], &families, all.iter()), 5);
        for other in ["failed", "going", "coming", "refused", "silent"] {
            let two = all
                .iter()
                .filter(|m| ["self", other].contains(&m.name_any().as_str()));
            assert_eq!(replaced(&all[0], &families, two), 1, "{other}");
        }
    }
}
