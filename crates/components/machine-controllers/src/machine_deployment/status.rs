//! The status of a MachineDeployment: pure.

use std::time::Duration;

use api::machine::{FailedMachine, MachineDeployment, MachineDeploymentCondition, MachineDeploymentStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::Resource;
use runtime::Error;

use super::rolling::{MachineCounts, RolloutSpec, RolloutStrategy};

/// Progress deadline where a deployment sets none. As long as the deadline of Kubernetes, and longer than a
/// machine takes to boot.
const DEADLINE: i32 = 600;
const AVAILABLE: &str = "Available";
const PROGRESSING: &str = "Progressing";
/// Reason of an update that is done.
const DONE: &str = "NewMachineSetAvailable";
/// Reason of an update without progress.
const TOO_LATE: &str = "ProgressDeadlineExceeded";

/// The observed state of a deployment.
pub struct DeploymentObservation<'a> {
    /// The wanted state; `None` where the specification is invalid.
    pub wanted: Option<&'a RolloutSpec>,
    /// Old sets.
    pub old: &'a [MachineCounts],
    /// The new set.
    pub new: Option<&'a MachineCounts>,
    /// Machines that are ready, whether for long enough or not.
    pub ready: usize,
    /// Machines that failed.
    pub failed: Vec<FailedMachine>,
    /// How often a name was taken.
    pub collisions: Option<i32>,
    /// The error of the last step.
    pub error: Option<&'a Error>,
    /// The present time.
    pub now: Time,
}

/// The status, and the requeue delay until the next deadline.
pub fn compute_status(
    deployment: &MachineDeployment,
    found: &DeploymentObservation<'_>,
) -> (MachineDeploymentStatus, Option<Duration>) {
    let old = deployment.status.clone().unwrap_or_default();
    let sum = |of: fn(&MachineCounts) -> usize| found.old.iter().chain(found.new).map(of).sum::<usize>();
    let (there, available) = (sum(|set| set.staying), sum(|set| set.available));
    let desired = found.wanted.map_or(0, |wanted| wanted.replicas);
    let number = |n: usize| Some(i32::try_from(n).unwrap_or(i32::MAX));
    let mut status = MachineDeploymentStatus {
        observed_generation: deployment.meta().generation,
        replicas: number(there),
        updated_replicas: number(found.new.map_or(0, |new| new.staying)),
        ready_replicas: number(found.ready),
        available_replicas: number(available),
        unavailable_replicas: number(there.max(desired).saturating_sub(available)),
        conditions: Vec::new(),
        collision_count: found.collisions,
        failed_machines: found.failed.clone(),
        preserved_failed_replicas: old.preserved_failed_replicas,
    };
    let enough = found
        .wanted
        .is_none_or(|wanted| available + wanted.unavailable >= wanted.replicas);
    let told = if enough {
        (
            "True",
            "MinimumReplicasAvailable",
            "as many machines as needed are ready".to_owned(),
        )
    } else {
        (
            "False",
            "MinimumReplicasUnavailable",
            format!("{available} of {desired} machines are ready"),
        )
    };
    status
        .conditions
        .push(condition(&old, AVAILABLE, told, false, &found.now));
    let (progressing, pause) = build_progressing(deployment, &old, &status, found);
    status.conditions.push(progressing);
    (status, pause)
}

fn build_progressing(
    deployment: &MachineDeployment,
    old: &MachineDeploymentStatus,
    status: &MachineDeploymentStatus,
    found: &DeploymentObservation<'_>,
) -> (MachineDeploymentCondition, Option<Duration>) {
    let before = old
        .conditions
        .iter()
        .find(|condition| condition.type_ == PROGRESSING);
    let plain =
        |told: (&str, &str, String), moved| (condition(old, PROGRESSING, told, moved, &found.now), None);
    if let Some(error) = found.error.filter(|error| error.is_failure()) {
        return plain(("False", error.class(), error.to_string()), false);
    }
    let Some(wanted) = found.wanted else {
        return plain(("Unknown", "NotUnderstood", String::new()), false);
    };
    if wanted.strategy == RolloutStrategy::Paused {
        return plain(
            (
                "Unknown",
                "DeploymentPaused",
                "nothing is replaced for now".into(),
            ),
            false,
        );
    }
    let rolled = found
        .old
        .iter()
        .all(|set| set.replicas + set.staying + set.terminating == 0);
    let new = found.new.cloned().unwrap_or_default();
    let was_done = before.is_some_and(|before| before.reason.as_deref() == Some(DONE))
        && old.observed_generation == status.observed_generation;
    if rolled && (was_done || new.available >= wanted.replicas && new.staying == wanted.replicas) {
        return plain(
            ("True", DONE, "all machines are of the present template".into()),
            false,
        );
    }
    let counts = |s: &MachineDeploymentStatus| {
        (
            s.replicas,
            s.updated_replicas,
            s.ready_replicas,
            s.available_replicas,
        )
    };
    let moved = counts(old) != counts(status)
        || old.observed_generation != status.observed_generation
        || before.is_none_or(|before| before.reason.as_deref() == Some(DONE) || before.status == "Unknown");
    let deadline = deployment.spec.progress_deadline_seconds.unwrap_or(DEADLINE);
    let deadline = Duration::from_secs(u64::try_from(deadline).unwrap_or_default());
    let since = before.and_then(|before| before.last_update_time.as_ref());
    let stood = since.map(|since| found.now.0.duration_since(since.0));
    let stood = stood
        .and_then(|stood| Duration::try_from(stood).ok())
        .unwrap_or_default();
    let there = format!(
        "{} of {} machines are of the present template and ready",
        new.available, wanted.replicas
    );
    let told_already = before.is_some_and(|before| before.reason.as_deref() == Some(TOO_LATE));
    if !moved && (told_already || stood >= deadline) {
        let why = format!("nothing has changed for {deadline:?}: {there}");
        return plain(("False", TOO_LATE, why), false);
    }
    let told = ("True", "MachineSetUpdated", there);
    let left = if moved {
        deadline
    } else {
        deadline.saturating_sub(stood)
    };
    (
        condition(old, PROGRESSING, told, moved, &found.now),
        Some(left + Duration::from_secs(1)),
    )
}

/// A condition whose times change only with the status or the reason. `moved`: the update made progress, even
/// with the same message.
fn condition(
    old: &MachineDeploymentStatus,
    type_: &str,
    (status, reason, message): (&str, &str, String),
    moved: bool,
    now: &Time,
) -> MachineDeploymentCondition {
    let before = old.conditions.iter().find(|condition| condition.type_ == type_);
    let same_status = before.filter(|before| before.status == status);
    let same = same_status.filter(|before| before.reason.as_deref() == Some(reason));
    MachineDeploymentCondition {
        type_: type_.to_owned(),
        status: status.to_owned(),
        last_update_time: same
            .filter(|_| !moved)
            .and_then(|before| before.last_update_time.clone())
            .or_else(|| Some(now.clone())),
        last_transition_time: same_status
            .and_then(|before| before.last_transition_time.clone())
            .or_else(|| Some(now.clone())),
        reason: Some(reason.to_owned()),
        message: Some(message),
    }
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
