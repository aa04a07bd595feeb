//! The status of a Machine, written only on a change.

use std::time::Duration;

use api::{
    machine::{Machine, MachineStatus},
    text::one_line,
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use kube::{Api, ResourceExt};
use runtime::{Error, Result, client::apply::FieldManager, clock};
use serde_json::{Value, json};

use crate::phase::Phase;

/// The operation on a Machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The instance is created.
    Create,
    /// The health is checked.
    HealthCheck,
    /// The Machine is deleted.
    Delete,
}

/// The state of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The operation continues.
    Processing,
    /// The operation failed, and is retried unless the phase says otherwise.
    Failed,
    /// The operation is done.
    Successful,
}

/// The report on a Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineReport {
    /// The phase of the Machine.
    pub phase: Phase,
    /// The operation on the Machine.
    pub operation: Operation,
    /// The state of the operation.
    pub state: State,
    /// The description for users.
    pub description: String,
    /// The code of an error.
    pub code: Option<String>,
}

impl MachineReport {
    /// A report without an error. The cloud of a tenant writes parts of some descriptions, so the description
    /// becomes a single line.
    pub fn new(phase: Phase, operation: Operation, state: State, description: impl Into<String>) -> Self {
        let description: String = description.into();
        Self {
            phase,
            operation,
            state,
            description: one_line(&description).into_owned(),
            code: None,
        }
    }

    /// A failure, with the code of the error class.
    pub fn error(phase: Phase, operation: Operation, error: &Error) -> Self {
        let codes: Vec<_> = error.codes().iter().map(|code| format!("{code:?}")).collect();
        Self {
            code: Some(if codes.is_empty() {
                error.class().to_owned()
            } else {
                codes.join(",")
            }),
            ..Self::new(phase, operation, State::Failed, error.to_string())
        }
    }
}

/// Writes the report and the conditions of the Node, if either has changed. The time of a phase is the time
/// when the phase began.
pub async fn write(
    manager: FieldManager,
    machines: &Api<Machine>,
    machine: &Machine,
    report: Option<&MachineReport>,
    conditions: Option<&[NodeCondition]>,
) -> Result<()> {
    let old = machine.status.clone().unwrap_or_default();
    let mut status = json!({});
    if let Some(report) = report {
        set_report(&mut status, &old, report);
    }
    if let Some(new) = conditions
        && !are_conditions_equal(&old.conditions, new)
    {
        status["conditions"] = json!(new);
    }
    if status.as_object().is_none_or(serde_json::Map::is_empty) {
        return Ok(());
    }
    manager
        .merge_status(machines, &machine.name_any(), &status)
        .await
        .map(drop)
}

fn set_report(status: &mut Value, old: &MachineStatus, report: &MachineReport) {
    let now = clock::now_k8s();
    let current = old.current_status.as_ref();
    let active = !matches!(report.phase, Phase::Running | Phase::Failed);
    if current.and_then(|current| current.phase.as_deref()) != Some(report.phase.as_str()) {
        status["currentStatus"] =
            json!({"phase": report.phase.as_str(), "timeoutActive": active, "lastUpdateTime": now});
    }
    let (operation, state) = (format!("{:?}", report.operation), format!("{:?}", report.state));
    let same = old.last_operation.as_ref().is_some_and(|last| {
        last.type_.as_ref() == Some(&operation)
            && last.state.as_ref() == Some(&state)
            && last.description.as_ref() == Some(&report.description)
            && last.error_code == report.code
    });
    if !same {
        status["lastOperation"] = json!({
            "type": operation, "state": state, "description": report.description, "errorCode": report.code,
            "lastUpdateTime": now,
        });
    }
}

/// Ignores heartbeats: comparing heartbeats would write the status of each Machine every few minutes.
fn are_conditions_equal(old: &[NodeCondition], new: &[NodeCondition]) -> bool {
    let compared = |c: &NodeCondition| {
        (
            c.type_.clone(),
            c.status.clone(),
            c.reason.clone(),
            c.message.clone(),
        )
    };
    old.iter().map(compared).eq(new.iter().map(compared))
}

/// The time since the begin of the phase, by the wall clock.
pub fn phase_age(machine: &Machine) -> Duration {
    let current = machine
        .status
        .as_ref()
        .and_then(|status| status.current_status.as_ref());
    elapsed_since(
        current
            .and_then(|current| current.last_update_time.as_ref())
            .map(|t| t.0),
    )
}

/// The time since `time`; zero for an unknown or future time.
pub fn elapsed_since(time: Option<Timestamp>) -> Duration {
    let passed = time.map(|time| clock::now().duration_since(time));
    passed
        .and_then(|passed| Duration::try_from(passed).ok())
        .unwrap_or_default()
}
