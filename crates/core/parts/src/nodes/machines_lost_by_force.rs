//! Machines of a shoot whose deletion is forced in the middle of a move, before this seed has restored the
//! Worker. Only the ShootState names these machines: no machine manager deletes the instances, and no Machine
//! object reports the instances.

use std::collections::BTreeSet;

use api::{
    extensions::{ExtensionObject as _, Worker},
    gardencore::Shoot,
    machine::state::{self, MachineState},
    meta::{LastOperationState as State, LastOperationType as Type},
};
use kube::{Api, ResourceExt};
use runtime::{
    Error, Result,
    client::{Cluster, Garden},
    error::Explain,
};

use crate::{
    Residency, configuration_problem,
    nodes::forced_machines::{machines, sentence_of},
    shoot_state::Opened,
};

/// A sentence for each machine of the ShootState that this seed has never had. Must be called before any
/// machine is deleted: the ShootState also lists machines that the machine manager has deleted since.
pub async fn machines_lost_by_force(
    garden: &Garden,
    residency: &Residency,
    shoot: &Shoot,
) -> Result<Vec<String>> {
    if residency.read_namespace().await?.is_some() && is_worker_here(residency, shoot).await? {
        return Ok(Vec::new());
    }
    let carried = match carried_machines(garden, shoot).await {
        Ok(carried) => carried,
        // A ShootState that no seed can read must not block a forced deletion.
        Err(error @ Error::Config { .. }) => return Ok(vec![unreadable(residency, &error)]),
        Err(error) => return Err(error),
    };
    let here: BTreeSet<_> = machines(residency)
        .await?
        .iter()
        .map(ResourceExt::name_any)
        .collect();
    Ok(sentences(shoot, &carried, &here))
}

/// Whether the machine objects of this seed are those of the shoot.
async fn is_worker_here(residency: &Residency, shoot: &Shoot) -> Result<bool> {
    let workers: Api<Worker> = residency.seed.namespaced(&residency.namespace);
    let name = shoot.name_any();
    let worker = workers.get_opt(&name).await;
    let worker = worker.context(format_args!("could not read Worker {name}"))?;
    Ok(worker.is_some_and(|worker| is_restored(&worker)))
}

/// A handed-over Worker has no machine objects, and a Worker during the restore may lack some objects.
fn is_restored(worker: &Worker) -> bool {
    let last = worker
        .default_status()
        .and_then(|status| status.last_operation.as_ref());
    last.is_some_and(|last| match last.type_ {
        Type::Migrate | Type::LiveMigrate => false,
        Type::Restore => last.state == State::Succeeded,
        Type::Create | Type::Reconcile | Type::Delete => true,
    })
}

async fn carried_machines(garden: &Garden, shoot: &Shoot) -> Result<MachineState> {
    let Some(opened) = Opened::read(garden, shoot).await? else {
        return Ok(MachineState::default());
    };
    let own = opened.extension("Worker", &shoot.name_any(), None).await?;
    let carried = opened.machines().await?.or_else(|| own.and_then(|own| own.state));
    carried.map_or(Ok(MachineState::default()), |carried| {
        state::decode(&carried).map_err(|error| {
            configuration_problem(format!(
                "{} of ShootState {}: {error}",
                state::ENTRY,
                shoot.name_any()
            ))
        })
    })
}

fn sentences(shoot: &Shoot, carried: &MachineState, here: &BTreeSet<String>) -> Vec<String> {
    let seed = shoot
        .status
        .as_ref()
        .and_then(|status| status.seed_name.as_deref());
    let mut sentences = Vec::new();
    for (deployment, machines) in &carried.machine_deployments {
        for machine in &machines.machines {
            let name = machine.name_any();
            if here.contains(&name) {
                continue;
            }
            let id = machine.spec.provider_id.as_deref().filter(|id| !id.is_empty());
            let why = format!(
                "only ShootState {} names the machine (of MachineDeployment {deployment}), because the deletion was forced before seed \
                 {} had restored the Worker",
                shoot.name_any(),
                seed.unwrap_or_default()
            );
            sentences.push(sentence_of(&name, id, &why));
        }
    }
    sentences
}

fn unreadable(residency: &Residency, error: &Error) -> String {
    format!(
        "machines of {} may be left behind: the ShootState, which alone names the machines, cannot be read: {error}. Look for the \
         instances in the provider's account, and delete the instances",
        residency.namespace
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn machine_objects_are_those_of_the_shoot_only_where_the_worker_was_restored_or_made() {
        for (type_, state, expected) in [
            ("Restore", "Succeeded", true),
            ("Restore", "Error", false),
            ("Restore", "Processing", false),
            ("Migrate", "Succeeded", false),
            ("Migrate", "Error", false),
            ("Reconcile", "Error", true),
            ("Create", "Processing", true),
        ] {
            let last = json!({"type": type_, "state": state, "progress": 1, "description": "d",
                "lastUpdateTime": "2026-01-01T00:00:00Z"});
            let mut worker = Worker::new("web", api::extensions::WorkerSpec::default());
            worker.status = Some(serde_json::from_value(json!({"lastOperation": last})).unwrap());
            assert_eq!(is_restored(&worker), expected, "{type_} {state}");
        }
        assert!(!is_restored(&Worker::new(
            "web",
            api::extensions::WorkerSpec::default()
        )));
    }
    #[test]
    fn machines_that_the_seed_has_are_not_named_twice() {
        let machine = |name: &str| {
            serde_json::from_value(json!({"metadata": {"name": name, "namespace": "n"},
                "spec": {"providerID": format!("aws:///z/{name}")}}))
            .unwrap()
        };
        let carried = state::collect(&[], &[], &[machine("m-1"), machine("m-2")], &[]);
        let shoot: Shoot = serde_json::from_value(json!({"metadata": {"name": "web"},
            "spec": {"region": "r", "provider": {"type": "t"}, "kubernetes": {}}, "status": {"seedName": "b"}}))
        .unwrap();
        let named = sentences(&shoot, &carried, &BTreeSet::from(["m-2".to_owned()]));
        assert_eq!(named.len(), 1, "{named:?}");
        assert!(
            named[0].starts_with("machine m-1 (aws:///z/m-1) may be left behind: only ShootState web"),
            "{named:?}"
        );
    }
}
