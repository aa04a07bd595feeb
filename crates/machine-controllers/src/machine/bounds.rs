//! Bounds of one Machine: its own where it says so, those of the process otherwise.

use std::time::Duration;

use api::{machine::Machine, meta::ErrorCode};
use kube::ResourceExt;
use runtime::{Error, Result};

use crate::{context::Timing, words::NODE_CONDITIONS};

/// Bounds of one Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// How long it may take to come.
    pub creation: Duration,
    /// How long it may be unhealthy; `None`: as long as it likes.
    pub health: Option<Duration>,
    /// How long its pods may take to leave.
    pub drain: Duration,
    /// Conditions of its Node that make it unhealthy.
    pub conditions: Vec<String>,
}

impl Bounds {
    /// Those of this Machine.
    pub fn of(machine: &Machine, timing: &Timing) -> Result<Self> {
        let spec = &machine.spec;
        let read = |field: &str, text: &Option<String>, default: Duration| match text {
            None => Ok(default),
            Some(text) => parse(text).ok_or_else(|| {
                Error::config(
                    ErrorCode::ErrConfigurationProblem,
                    format!(
                        "spec.{field} of Machine {} is {text:?}: write a time such as 20m",
                        machine.name_any()
                    ),
                )
            }),
        };
        let health = read("healthTimeout", &spec.health_timeout, timing.health)?;
        let conditions = spec.node_conditions.as_deref().unwrap_or(NODE_CONDITIONS);
        Ok(Self {
            creation: read("creationTimeout", &spec.creation_timeout, timing.creation)?,
            health: (spec.disable_health_timeout != Some(true)).then_some(health),
            drain: read("drainTimeout", &spec.drain_timeout, timing.drain)?,
            conditions: conditions
                .split(',')
                .map(|condition| condition.trim().to_owned())
                .filter(|condition| !condition.is_empty())
                .collect(),
        })
    }
}

fn parse(text: &str) -> Option<Duration> {
    let parsed: kube::core::Duration = text.parse().ok()?;
    (!parsed.is_negative()).then(|| parsed.into())
}
