//! The status of a Machine: written only where it changes.

use std::time::Duration;

use api::machine::{Machine, MachineStatus};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::NodeCondition;
use kube::{Api, ResourceExt};
use runtime::{Error, Result, apply::FieldManager, clock};
use serde_json::{Value, json};

use crate::phase::Phase;

/// What is done with a Machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It is made.
    Create,
    /// It is watched.
    HealthCheck,
    /// It is taken away.
    Delete,
}

/// How that stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It goes on.
    Processing,
    /// It went wrong, and is tried again unless the phase says otherwise.
    Failed,
    /// It is done.
    Successful,
}

/// What is to be told of a Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// How it is.
    pub phase: Phase,
    /// What is done with it.
    pub doing: Doing,
    /// How that stands.
    pub state: State,
    /// A sentence.
    pub description: String,
    /// The code of an error.
    pub code: Option<String>,
}

impl Told {
    /// What goes well.
    pub fn new(phase: Phase, doing: Doing, state: State, description: impl Into<String>) -> Self {
        Self {
            phase,
            doing,
            state,
            description: description.into(),
            code: None,
        }
    }

    /// What went wrong, with the code of its class.
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

/// Writes what is told and the conditions of the Node, if anything of it is new. The time of a phase is that
/// of its beginning.
pub async fn write(
    manager: FieldManager,
    machines: &Api<Machine>,
    machine: &Machine,
    told: Option<&Told>,
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

fn tell(status: &mut Value, old: &MachineStatus, told: &Told) {
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

/// Heartbeats are no news: they would be a write for each Node every some minutes.
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

/// For how long a time has passed; not at all where it is not known or lies ahead.
pub fn since(time: Option<Timestamp>) -> Duration {
    let passed = time.map(|time| clock::now().duration_since(time));
    passed
        .and_then(|passed| Duration::try_from(passed).ok())
        .unwrap_or_default()
}
