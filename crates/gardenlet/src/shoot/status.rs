//! What a Shoot's status says before, while and after a flow runs: pure functions that build merge patches
//! (design of the fields: `lastOperation`, `lastErrors`, `seedName`, `technicalID`, `uid`, `observedGeneration`).

use std::time::Duration;

use api::{
    gardencore::Shoot,
    meta::{
        Condition, ConditionStatus, LastError, LastOperation, LastOperationState as State,
        LastOperationType as Type,
    },
};
use flow::{Cause, FlowError, Progress};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use runtime::Error;
use serde_json::{Value, json};

/// Who writes.
#[derive(Clone, Debug)]
pub struct Writer {
    /// Name of the pod or host.
    pub id: String,
    /// Name of the process.
    pub name: &'static str,
    /// Version of the process.
    pub version: &'static str,
    /// Name of the own seed.
    pub seed: String,
}

/// The first write of an operation. From here on the seed is recorded as responsible: before anything is made there.
#[must_use]
pub fn started(shoot: &Shoot, writer: &Writer, type_: Type, now: &Time) -> Value {
    let status = shoot.status.as_ref();
    let again = status
        .and_then(|s| s.last_operation.as_ref())
        .is_some_and(|last| last.type_ == type_ && matches!(last.state, State::Error | State::Processing));
    let description = match type_ {
        Type::Restore => "Restoration of Shoot cluster initialized.",
        Type::Migrate => "Preparation of Shoot cluster for migration initialized.",
        Type::Delete => "Deletion of Shoot cluster in progress.",
        _ => "Reconciliation of Shoot cluster initialized.",
    };
    let mut patch = json!({
        "gardener": {"id": writer.id, "name": writer.name, "version": writer.version},
        "observedGeneration": shoot.metadata.generation,
        "lastOperation": operation(type_, State::Processing, 0, description, now.clone()),
        "uid": shoot_uid(shoot),
        "technicalID": technical_id(shoot),
    });
    if type_ != Type::Migrate {
        patch["seedName"] = json!(writer.seed);
    }
    if !again {
        patch["lastErrors"] = Value::Null;
        patch["retryCycleStartTime"] = json!(now);
    }
    patch
}

/// Progress of a running flow.
#[must_use]
pub fn progressed(type_: Type, progress: &Progress, now: Time) -> Value {
    let description = if progress.running.is_empty() {
        "Waiting for tasks.".to_owned()
    } else {
        progress.running.join(", ")
    };
    json!({"lastOperation": operation(type_, State::Processing, i32::from(progress.percent), &description, now)})
}

/// The operation succeeded. For a migration this is the hand-over: one write that names the new seed (I1).
#[must_use]
pub fn succeeded(shoot: &Shoot, type_: Type, now: Time) -> Value {
    let description = match type_ {
        Type::Restore => "Shoot cluster has been successfully restored.",
        Type::Migrate => "Shoot cluster has been successfully prepared for migration.",
        Type::Delete => "Shoot cluster has been successfully deleted.",
        _ => "Shoot cluster has been successfully reconciled.",
    };
    let mut patch = json!({
        "lastOperation": operation(type_, State::Succeeded, 100, description, now),
        "lastErrors": null,
        "retryCycleStartTime": null,
    });
    if type_ == Type::Migrate {
        patch["seedName"] = json!(shoot.spec.seed_name);
    }
    patch
}

/// The operation met errors. It goes on by itself until `retry_duration` after its first try; then it is `Failed`.
#[must_use]
pub fn failed(
    shoot: &Shoot,
    type_: Type,
    progress: i32,
    errors: &[LastError],
    retry_duration: Duration,
    now: Time,
) -> Value {
    let began = shoot
        .status
        .as_ref()
        .and_then(|status| status.retry_cycle_start_time.as_ref());
    let over = began.is_some_and(|began| is_older_than(began.0, retry_duration, now.0));
    let state = if over { State::Failed } else { State::Error };
    let mut description = errors
        .iter()
        .map(|error| error.description.as_str())
        .collect::<Vec<_>>()
        .join("; ");
    if !description.ends_with('.') {
        description.push('.');
    }
    if !over {
        description.push_str(" Operation will be retried.");
    }
    json!({"lastOperation": operation(type_, state, progress, &description, now), "lastErrors": errors})
}

/// The errors of a flow as the API has them: one a task, with the task's name and the error's codes.
#[must_use]
pub fn last_errors(error: &FlowError<Error>, now: &Time) -> Vec<LastError> {
    error
        .failures
        .iter()
        .map(|failure| {
            let sentence = match &failure.cause {
                Cause::Error(error) => error.to_string(),
                Cause::TimedOut {
                    after,
                    last: Some(error),
                } => format!("not done after {after:?}: {error}"),
                Cause::TimedOut { after, last: None } => format!("not done after {after:?}"),
            };
            LastError {
                description: format!("task \"{}\" failed: {sentence}", failure.task),
                task_id: Some(failure.task.to_owned()),
                codes: failure
                    .error()
                    .map(|error| error.codes().to_vec())
                    .unwrap_or_default(),
                last_update_time: Some(now.clone()),
            }
        })
        .collect()
}

/// An error outside of any task.
#[must_use]
pub fn single_error(task: &str, error: &Error, now: &Time) -> LastError {
    LastError {
        description: error.to_string(),
        task_id: Some(task.to_owned()),
        codes: error.codes().to_vec(),
        last_update_time: Some(now.clone()),
    }
}

/// Task under which the preflight of a move is told in `lastErrors`.
const PREFLIGHT: &str = "Checking whether the destination seed can take the shoot";

/// The preflight's constraint as an error, in the place where users look for errors; `None` if it holds or is told already.
/// The first write of whatever operation begins next takes it away.
#[must_use]
pub fn move_cannot_begin(shoot: &Shoot, constraint: &Condition, now: &Time) -> Option<Value> {
    if constraint.status == ConditionStatus::True {
        return None;
    }
    let told = shoot.status.as_ref().is_some_and(|status| {
        matches!(status.last_errors.as_slice(), [only]
            if only.description == constraint.message && only.codes == constraint.codes)
    });
    let error = LastError {
        description: constraint.message.clone(),
        task_id: Some(PREFLIGHT.to_owned()),
        codes: constraint.codes.clone(),
        last_update_time: Some(now.clone()),
    };
    (!told).then(|| json!({"lastErrors": [error]}))
}

/// `shoot--<project>--<shoot>`; once it is recorded it never changes.
#[must_use]
pub fn technical_id(shoot: &Shoot) -> String {
    let recorded = shoot
        .status
        .as_ref()
        .map(|status| status.technical_id.clone())
        .filter(|id| !id.is_empty());
    recorded.unwrap_or_else(|| {
        let namespace = shoot.namespace().unwrap_or_default();
        let project = namespace.strip_prefix("garden-").unwrap_or(&namespace);
        format!("shoot--{project}--{}", shoot.name_any())
    })
}

/// The uid under which backups are kept: recorded at the first operation, so that it survives a restored garden.
#[must_use]
pub fn shoot_uid(shoot: &Shoot) -> Option<String> {
    let recorded = shoot
        .status
        .as_ref()
        .map(|status| status.uid.clone())
        .filter(|uid| !uid.is_empty());
    recorded.or_else(|| shoot.metadata.uid.clone())
}

fn operation(type_: Type, state: State, progress: i32, description: &str, now: Time) -> LastOperation {
    LastOperation {
        description: description.to_owned(),
        last_update_time: now,
        progress,
        state,
        type_,
    }
}

fn is_older_than(then: Timestamp, period: Duration, now: Timestamp) -> bool {
    SignedDuration::try_from(period).is_ok_and(|period| now.duration_since(then) > period)
}
