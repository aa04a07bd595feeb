//! Judges the health of a Machine by the Node: pure.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;

use super::configuration::MachineConfiguration;
use crate::{constants::COMPONENTS_NOT_READY, phase::Phase};

/// The inputs of the judgement.
pub struct HealthInputs<'a> {
    /// The phase that was written last.
    pub phase: Option<Phase>,
    /// The time since the phase changed, as far as the shoot's API answered meanwhile.
    pub phase_age: Duration,
    /// The Node, if the Node exists.
    pub node: Option<&'a Node>,
}

/// The result of the judgement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The Machine is healthy, or cannot be judged.
    Stays,
    /// The Machine has to change within a bound.
    Waits(String),
    /// The Machine enters this phase.
    BecomesPhase(Phase, String),
    /// The bound has passed: the Machine failed, unless too many Machines fail at once.
    Expired(String),
}

/// Judges a Machine. A Machine without a written phase was restored: the Node decides.
pub fn judge_health(inputs: &HealthInputs<'_>, configuration: &MachineConfiguration) -> Verdict {
    let problem = inputs.node.map_or_else(
        || Some("it has no Node".to_owned()),
        |node| find_problem(node, &configuration.conditions),
    );
    match (inputs.phase, problem) {
        (Some(Phase::Failed | Phase::Terminating), _) | (Some(Phase::Running), None) => Verdict::Stays,
        (Some(Phase::Pending | Phase::CrashLoopBackOff) | None, None) => match inputs.node {
            Some(node) if inputs.phase.is_some() && lacks_critical_components(node) => judge_join(
                inputs,
                configuration,
                "critical components do not run on its Node yet".into(),
            ),
            _ => Verdict::BecomesPhase(Phase::Running, "its Node is ready".into()),
        },
        (Some(Phase::Unknown), None) => {
            Verdict::BecomesPhase(Phase::Running, "its Node is ready again".into())
        }
        (Some(Phase::Running), Some(why)) => Verdict::BecomesPhase(Phase::Unknown, why),
        (None, Some(why)) if inputs.node.is_some() => Verdict::BecomesPhase(Phase::Unknown, why),
        (None, Some(why)) => Verdict::BecomesPhase(Phase::Pending, why),
        (Some(Phase::Unknown), Some(why)) => match configuration.health {
            Some(bound) if inputs.phase_age >= bound => {
                Verdict::Expired(format!("it was unhealthy for more than {bound:?}: {why}"))
            }
            _ => Verdict::Waits(why),
        },
        (Some(Phase::Pending | Phase::CrashLoopBackOff), Some(why)) => judge_join(inputs, configuration, why),
    }
}

fn judge_join(inputs: &HealthInputs<'_>, configuration: &MachineConfiguration, why: String) -> Verdict {
    if inputs.phase_age >= configuration.creation {
        Verdict::Expired(format!(
            "it did not join the cluster within {:?}: {why}",
            configuration.creation
        ))
    } else {
        Verdict::Waits(why)
    }
}

/// The reason why a Node is unhealthy.
fn find_problem(node: &Node, unhealthy_types: &[String]) -> Option<String> {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let conditions = conditions.map(Vec::as_slice).unwrap_or_default();
    let Some(ready) = conditions.iter().find(|condition| condition.type_ == "Ready") else {
        return Some("its Node has no condition Ready".into());
    };
    let is_bad = |condition: &&k8s_openapi::api::core::v1::NodeCondition| {
        condition.status != "False" && unhealthy_types.contains(&condition.type_)
    };
    let problem = if ready.status == "True" {
        conditions.iter().find(is_bad)?
    } else {
        ready
    };
    Some(format!(
        "its Node has the condition {} {} ({})",
        problem.type_,
        problem.status,
        problem
            .message
            .as_deref()
            .filter(|m| !m.is_empty())
            .unwrap_or("no message")
    ))
}

fn lacks_critical_components(node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.into_iter().any(|taint| taint.key == COMPONENTS_NOT_READY)
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
