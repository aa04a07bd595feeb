//! Judges the health of a Machine by the Node: pure.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;

use super::bounds::Bounds;
use crate::{phase::Phase, words::NOT_EQUIPPED};

/// The inputs of the judgement.
pub struct HealthInputs<'a> {
    /// The phase that was written last.
    pub phase: Option<Phase>,
    /// The time since the phase changed, as far as the shoot's API answered meanwhile.
    pub lasts: Duration,
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
    /// The Machine is in this phase now.
    Is(Phase, String),
    /// The bound has passed: the Machine failed, unless too many Machines fail at once.
    Expired(String),
}

/// Judges a Machine. A Machine without a written phase was restored: the Node decides.
pub fn judge(known: &HealthInputs<'_>, bounds: &Bounds) -> Verdict {
    let ailment = known.node.map_or_else(
        || Some("it has no Node".to_owned()),
        |node| ailment(node, &bounds.conditions),
    );
    match (known.phase, ailment) {
        (Some(Phase::Failed | Phase::Terminating), _) | (Some(Phase::Running), None) => Verdict::Stays,
        (Some(Phase::Pending | Phase::CrashLoopBackOff) | None, None) => match known.node {
            Some(node) if known.phase.is_some() && lacks_equipment(node) => coming(
                known,
                bounds,
                "what every pod needs does not run on its Node yet".into(),
            ),
            _ => Verdict::Is(Phase::Running, "its Node is ready".into()),
        },
        (Some(Phase::Unknown), None) => Verdict::Is(Phase::Running, "its Node is ready again".into()),
        (Some(Phase::Running), Some(why)) => Verdict::Is(Phase::Unknown, why),
        (None, Some(why)) if known.node.is_some() => Verdict::Is(Phase::Unknown, why),
        (None, Some(why)) => Verdict::Is(Phase::Pending, why),
        (Some(Phase::Unknown), Some(why)) => match bounds.health {
            Some(bound) if known.lasts >= bound => {
                Verdict::Expired(format!("it was unhealthy for more than {bound:?}: {why}"))
            }
            _ => Verdict::Waits(why),
        },
        (Some(Phase::Pending | Phase::CrashLoopBackOff), Some(why)) => coming(known, bounds, why),
    }
}

fn coming(known: &HealthInputs<'_>, bounds: &Bounds, why: String) -> Verdict {
    if known.lasts >= bounds.creation {
        Verdict::Expired(format!(
            "it did not join the cluster within {:?}: {why}",
            bounds.creation
        ))
    } else {
        Verdict::Waits(why)
    }
}

/// The reason why a Node is unhealthy.
fn ailment(node: &Node, conditions: &[String]) -> Option<String> {
    let told = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    let told = told.map(Vec::as_slice).unwrap_or_default();
    let Some(ready) = told.iter().find(|condition| condition.type_ == "Ready") else {
        return Some("its Node does not say whether it is ready".into());
    };
    let bad = |condition: &&k8s_openapi::api::core::v1::NodeCondition| {
        condition.status != "False" && conditions.contains(&condition.type_)
    };
    let found = if ready.status == "True" {
        told.iter().find(bad)?
    } else {
        ready
    };
    Some(format!(
        "its Node has the condition {} {} ({})",
        found.type_,
        found.status,
        found
            .message
            .as_deref()
            .filter(|m| !m.is_empty())
            .unwrap_or("no message")
    ))
}

fn lacks_equipment(node: &Node) -> bool {
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    taints.into_iter().any(|taint| taint.key == NOT_EQUIPPED)
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
