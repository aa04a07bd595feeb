//! Marks a Machine as failed when a bound has passed. This decision costs a Node its pods. So the decision
//! is taken on live reads of the API servers, for one Machine at a time, and for few Machines of a deployment
//! at once. When many Nodes are unhealthy together, the cause is rarely the Nodes.

use std::{collections::BTreeMap, sync::Arc};

use api::machine::{Machine, MachineSet};
use kube::{Api, Resource, ResourceExt, api::ListParams};
use runtime::{Result, client::Cluster as _, controller::Next, error::Explain as _};
use tracing::warn;

use super::{
    Machines,
    configuration::MachineConfiguration,
    health::{HealthInputs, Verdict, judge_health},
    identity::node_name,
    status::{self, MachineReport, Operation, State},
};
use crate::phase::Phase;

/// The error code of a Machine whose bound has passed.
const DEADLINE_EXCEEDED: &str = "DeadlineExceeded";

impl Machines {
    /// Marks the Machine as failed, unless the reason no longer holds or different Machines have to be
    /// replaced first.
    pub(super) async fn expire(
        &self,
        seen: &Machine,
        configuration: &MachineConfiguration,
        why: &str,
    ) -> Result<Next> {
        let again = Next::After(self.timing.poll_interval);
        // Many Machines may expire at once: the cache already answers for most of these Machines.
        if Phase::from_status(seen) == Some(Phase::Unknown) {
            let (cached, deployments) = (self.cache.all()?, self.deployment_by_set().await?);
            let count = count_replacements(seen, &deployments, cached.iter().map(Arc::as_ref));
            if count >= self.timing.replaced_at_once {
                self.report_waiting_for_replacement(seen, why).await?;
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
            Some(node) => self.reach.read_node(node).await?,
            None => None,
        };
        let inputs = HealthInputs {
            phase,
            phase_age: status::phase_age(&machine).min(self.reach.check_reachable().await?),
            node: node.as_ref(),
        };
        let Verdict::Expired(_) = judge_health(&inputs, configuration) else {
            return Ok(again);
        };
        let lost = phase == Some(Phase::Unknown);
        if lost && self.is_replacement_limit_reached(&machine).await? {
            self.report_waiting_for_replacement(&machine, why).await?;
            return Ok(again);
        }
        let operation = if lost {
            Operation::HealthCheck
        } else {
            Operation::Create
        };
        warn!(machine = name, why, "a machine failed");
        let mut report = MachineReport::new(Phase::Failed, operation, State::Failed, why);
        report.code = Some(DEADLINE_EXCEEDED.into());
        self.write_report(&machine, &report).await?;
        self.events.warning(&machine, "MachineFailed", why).await;
        Ok(Next::Change)
    }

    async fn report_waiting_for_replacement(&self, machine: &Machine, why: &str) -> Result<()> {
        let waits = format!("{why}; the Machine stays until other Machines of its deployment are replaced");
        let report = MachineReport::new(Phase::Unknown, Operation::HealthCheck, State::Processing, waits);
        self.write_report(machine, &report).await
    }

    /// Whether the allowed number of Machines of the deployment are being replaced.
    async fn is_replacement_limit_reached(&self, machine: &Machine) -> Result<bool> {
        let deployments = self.deployment_by_set().await?;
        let live = self.machines_api().list(&ListParams::default()).await;
        let live = live.context("could not list Machines")?;
        Ok(count_replacements(machine, &deployments, live.items.iter()) >= self.timing.replaced_at_once)
    }

    async fn deployment_by_set(&self) -> Result<BTreeMap<String, String>> {
        let sets: Api<MachineSet> = self.seed.namespaced(&self.namespace);
        let sets = sets.list(&ListParams::default()).await;
        Ok(deployment_by_set(
            &sets.context("could not list MachineSets")?.items,
        ))
    }
}

/// The deployment (or the set, if there is no deployment) of the Machines of each set, by the name of the
/// set.
fn deployment_by_set(sets: &[MachineSet]) -> BTreeMap<String, String> {
    let deployment = |set: &MachineSet| owner_name(set, "MachineDeployment");
    sets.iter()
        .map(|set| (set.name_any(), deployment(set).unwrap_or_else(|| set.name_any())))
        .collect()
}

fn owner_name<K: Resource>(object: &K, kind: &str) -> Option<String> {
    let owners = object.meta().owner_references.as_ref()?;
    let owner = owners.iter().find(|owner| owner.kind == kind)?;
    Some(owner.name.clone())
}

/// Counts the other Machines of the same deployment that are being created or deleted: the Machines that are
/// neither running nor unhealthy.
fn count_replacements<'a>(
    machine: &Machine,
    deployment_by_set: &BTreeMap<String, String>,
    all: impl Iterator<Item = &'a Machine>,
) -> usize {
    let deployment = |machine: &Machine| {
        let set = owner_name(machine, "MachineSet")?;
        Some(deployment_by_set.get(&set).cloned().unwrap_or(set))
    };
    let (own, name) = (deployment(machine), machine.name_any());
    all.filter(|other| other.name_any() != name && deployment(other) == own)
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
    fn machines_of_the_deployment_that_are_created_or_deleted_are_counted() {
        let deployments = BTreeMap::from([
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
        assert_eq!(count_replacements(&all[0], &deployments, all.iter()), 5);
        for other in ["failed", "going", "coming", "refused", "silent"] {
            let two = all
                .iter()
                .filter(|m| ["self", other].contains(&m.name_any().as_str()));
            assert_eq!(count_replacements(&all[0], &deployments, two), 1, "{other}");
        }
    }
}
