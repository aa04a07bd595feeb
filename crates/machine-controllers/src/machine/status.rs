//! The status of a Machine, written only on a change.

use std::time::Duration;

use api::machine::{Machine, MachineStatus};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use kube::{Api, ResourceExt};
use runtime::{Error, Result, apply::FieldManager, clock};
use serde_json::{Value, json};

use crate::phase::Phase;

/// The operation on a Machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// The instance is created.
    Create,
    /// The health is checked.
    HealthCheck,
    /// The Machine is deleted.
    Delete,
}

/// How that stands.
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
    pub doing: Doing,
    /// How that stands.
    pub state: State,
    /// A sentence.
    pub description: String,
    /// The code of an error.
    pub code: Option<String>,
}

impl MachineReport {
    /// A report without an error.
    pub fn new(phase: Phase, doing: Doing, state: State, description: impl Into<String>) -> Self {
        Self {
            phase,
            doing,
            state,
            description: description.into(),
            code: None,
        }
    }

    /// A failure, with the code of the error class.
    pub fn error(phase: Phase, doing: Doing, error: &Error) -> Self {
        let codes: Vec<_> = error.codes().iter().map(|code| format!("{code:?}")).collect();
        Self {
            code: Some(if codes.is_empty() {
                error.class().to_owned()
            } else {
                codes.join(",")
            }),
            ..Self::new(phase, doing, State::Failed, error.to_string())
        }
    }
}

/// Writes the report and the conditions of the Node, if either has changed. The time of a phase is the time
/// when the phase began.
pub async fn write(
    manager: FieldManager,
    machines: &Api<Machine>,
    machine: &Machine,
    told: Option<&MachineReport>,
    conditions: Option<&[NodeCondition]>,
) -> Result<()> {
    let old = machine.status.clone().unwrap_or_default();
    let mut status = json!({});
    if let Some(told) = told {
        tell(&mut status, &old, told);
    }
    if let Some(new) = conditions
        && !same(&old.conditions, new)
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

fn tell(status: &mut Value, old: &MachineStatus, told: &MachineReport) {
    let now = clock::now_k8s();
    let current = old.current_status.as_ref();
    let active = !matches!(told.phase, Phase::Running | Phase::Failed);
    if current.and_then(|current| current.phase.as_deref()) != Some(told.phase.as_str()) {
        status["currentStatus"] =
            json!({"phase": told.phase.as_str(), "timeoutActive": active, "lastUpdateTime": now});
    }
    let (doing, state) = (format!("{:?}", told.doing), format!("{:?}", told.state));
    let same = old.last_operation.as_ref().is_some_and(|last| {
        last.type_.as_ref() == Some(&doing)
            && last.state.as_ref() == Some(&state)
            && last.description.as_ref() == Some(&told.description)
            && last.error_code == told.code
    });
    if !same {
        status["lastOperation"] = json!({
            "type": doing, "state": state, "description": told.description, "errorCode": told.code,
            "lastUpdateTime": now,
        });
    }
}

/// Ignores heartbeats: comparing heartbeats would write the status of each Machine every few minutes.
fn same(old: &[NodeCondition], new: &[NodeCondition]) -> bool {
    let news = |c: &NodeCondition| {
        (
            c.type_.clone(),
            c.status.clone(),
            c.reason.clone(),
            c.message.clone(),
        )
    };
    old.iter().map(news).eq(new.iter().map(news))
}

/// For how long the phase has lasted, by the clock of the wall.
pub fn lasts(machine: &Machine) -> Duration {
    let current = machine
        .status
        .as_ref()
        .and_then(|status| status.current_status.as_ref());
    since(
        current
            .and_then(|current| current.last_update_time.as_ref())
            .map(|t| t.0),
    )
}

/// The time since `time`; zero for an unknown or future time.
pub fn since(time: Option<Timestamp>) -> Duration {
    let passed = time.map(|time| clock::now().duration_since(time));
    passed
        .and_then(|passed| Duration::try_from(passed).ok())
        .unwrap_or_default()
}
