//! The `MachineConfiguration` of a Machine, as upstream: the fields of the Machine where set, the flags of
//! the process otherwise.

use std::time::Duration;

use api::{machine::Machine, meta::ErrorCode};
use kube::ResourceExt;
use runtime::{Error, Result};

use crate::{constants::NODE_CONDITIONS, context::Timing};

/// Timeouts of a Machine, and the conditions of an unhealthy Node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineConfiguration {
    /// The longest time until the machine has joined.
    pub creation: Duration,
    /// The longest time for which the machine may be unhealthy; `None` for no bound.
    pub health: Option<Duration>,
    /// The longest time for the pods to leave.
    pub drain: Duration,
    /// Conditions of the Node that make the machine unhealthy.
    pub conditions: Vec<String>,
    /// The zone of the Machine is isolated, and the budget of the zone is spent. Set for a deletion alone.
    pub is_zone_budget_spent: bool,
}

impl MachineConfiguration {
    /// Those of this Machine.
    pub fn from_machine(machine: &Machine, timing: &Timing) -> Result<Self> {
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
            is_zone_budget_spent: false,
        })
    }
}

fn parse(text: &str) -> Option<Duration> {
    let parsed: kube::core::Duration = text.parse().ok()?;
    (!parsed.is_negative()).then(|| parsed.into())
}
