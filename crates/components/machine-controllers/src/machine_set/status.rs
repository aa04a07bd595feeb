//! The status of a MachineSet.

use std::time::Duration;

use api::machine::{FailedMachine, Machine, MachineSet, MachineSetStatus};
use kube::{Api, Resource, ResourceExt};
use runtime::{Error, Result, client::apply::FieldManager, clock};
use serde_json::{Value, json};

use crate::{machine::elapsed_since, phase::Phase};

/// Counts the Machines of a set and writes the status, if the status has changed; an error is reported.
/// Returns the time until the next Machine counts as available.
pub async fn write(
    manager: FieldManager,
    sets: &Api<MachineSet>,
    set: &MachineSet,
    own: &[&Machine],
    error: Option<&Error>,
) -> Result<Option<Duration>> {
    let old = set.status.clone().unwrap_or_default();
    let (mut new, pause) = count_machines(set, own);
    new["machineSetCondition"] = json!(conditions(&old, error.filter(|error| error.is_failure())));
    let now =
        serde_json::to_value(&old).map_err(|e| Error::bug("a status does not serialise").caused_by(e))?;
    let differs = new.as_object().into_iter().flatten().any(|(field, value)| {
        let empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
        now.get(field) != Some(value) && !(empty && now.get(field).is_none())
    });
    if differs {
        manager.merge_status(sets, &set.name_any(), &new).await?;
    }
    Ok(pause)
}

fn count_machines(set: &MachineSet, own: &[&Machine]) -> (Value, Option<Duration>) {
    let least = min_ready_duration(set.spec.min_ready_seconds);
    let staying: Vec<_> = own
        .iter()
        .filter(|machine| machine.meta().deletion_timestamp.is_none())
        .collect();
    let count = |which: &dyn Fn(&Machine) -> bool| staying.iter().filter(|machine| which(machine)).count();
    let template = set
        .spec
        .template
        .as_ref()
        .and_then(|t| t.metadata.as_ref()?.labels.as_ref());
    let failed: Vec<_> = staying
        .iter()
        .filter(|machine| {
            matches!(
                Phase::from_machine(machine),
                Phase::Failed | Phase::CrashLoopBackOff
            )
        })
        .map(|machine| FailedMachine {
            name: Some(machine.name_any()),
            provider_id: machine.spec.provider_id.clone(),
            last_operation: machine
                .status
                .as_ref()
                .and_then(|status| status.last_operation.clone()),
            owner_ref: Some(set.name_any()),
        })
        .collect();
    let pause = staying
        .iter()
        .filter_map(|machine| time_until_available(machine, least))
        .min();
    let status = json!({
        "replicas": staying.len(),
        "fullyLabeledReplicas": count(&|machine| template.is_none_or(|wanted| {
            wanted.iter().all(|(key, value)| machine.labels().get(key) == Some(value))
        })),
        "readyReplicas": count(&|machine| Phase::from_machine(machine) == Phase::Running),
        "availableReplicas": count(&|machine| is_available(machine, least)),
        "observedGeneration": set.meta().generation,
        "failedMachines": failed,
    });
    (status, pause)
}

/// Whether a Machine has been ready for long enough.
pub fn is_available(machine: &Machine, least: Duration) -> bool {
    Phase::from_machine(machine) == Phase::Running && running_duration(machine) >= least
}

/// The time until a ready Machine becomes available; `None` for Machines that are not ready or already
/// available.
pub fn time_until_available(machine: &Machine, least: Duration) -> Option<Duration> {
    let left = least.checked_sub(running_duration(machine))?;
    (Phase::from_machine(machine) == Phase::Running && !left.is_zero())
        // Times of the API are whole seconds.
        .then(|| left + Duration::from_secs(1))
}

/// `minReadySeconds` as a time.
pub fn min_ready_duration(seconds: Option<i32>) -> Duration {
    Duration::from_secs(u64::try_from(seconds.unwrap_or_default()).unwrap_or_default())
}

fn running_duration(machine: &Machine) -> Duration {
    let status = machine
        .status
        .as_ref()
        .and_then(|status| status.current_status.as_ref());
    elapsed_since(
        status
            .and_then(|status| status.last_update_time.as_ref())
            .map(|time| time.0),
    )
}

/// The only condition of a set: whether Machines could not be created or deleted.
fn conditions(old: &MachineSetStatus, error: Option<&Error>) -> Vec<Value> {
    let Some(error) = error else {
        return Vec::new();
    };
    let before = old
        .machine_set_condition
        .iter()
        .find(|condition| condition.type_ == "ReplicaFailure");
    let since = before
        .and_then(|condition| condition.last_transition_time.clone())
        .unwrap_or_else(clock::now_k8s);
    vec![json!({
        "type": "ReplicaFailure", "status": "True", "reason": error.class(), "message": error.to_string(),
        "lastTransitionTime": since,
    })]
}
