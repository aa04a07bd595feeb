//! The write that follows from a verdict: constraint, approval and, for a hand-on, the new seed of the shoot.
//!
//! A JSON patch, because a merge patch would keep fields of an earlier specification in the new
//! specification.

use api::{
    constants::condition::{READY_FOR_MIGRATION, TAKEOVER_POSSIBLE},
    gardencore::Shoot,
    meta::{Condition, ConditionStatus},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::{Value, json};

use super::{
    approval::{Decision, HandOn},
    preflight::Verdict,
};

/// A write on exactly the version of the Shoot that was judged.
#[derive(Debug)]
pub struct Change {
    /// Operations of a JSON patch (RFC 6902).
    pub patch: Value,
    /// Whether the patch changes the constraint.
    pub tells: bool,
}

/// The necessary write; `None` if the status is up to date.
#[must_use]
pub fn change(shoot: &Shoot, verdict: Option<&Verdict>, decision: &Decision, now: Time) -> Option<Change> {
    let status = shoot.status.as_ref()?;
    let mut operations = Vec::new();
    let mut constraints = status.constraints.clone();
    // A shoot that is handed on has reached its wanted seed.
    match verdict.filter(|_| decision.hand_on.is_none()) {
        Some(verdict) => constraint(verdict, now).merge_into(&mut constraints),
        None => constraints.retain(|c| ![READY_FOR_MIGRATION, TAKEOVER_POSSIBLE].contains(&c.type_.as_str())),
    }
    let tells = constraints != status.constraints;
    if tells {
        operations.push(json!({"op": "add", "path": "/status/constraints", "value": constraints}));
    }
    match (&status.migration, &decision.approval) {
        (old, new) if old == new => {}
        (_, Some(new)) => {
            operations.push(json!({"op": "add", "path": "/status/migration", "value": new}));
        }
        (_, None) => operations.push(json!({"op": "remove", "path": "/status/migration"})),
    }
    if let Some(HandOn {
        to,
        ownership,
        former_seeds,
    }) = &decision.hand_on
    {
        operations.push(json!({"op": "add", "path": "/status/seedName", "value": to}));
        operations.push(json!({"op": "add", "path": "/status/ownership", "value": ownership}));
        operations.push(json!({"op": "add", "path": "/status/formerSeeds", "value": former_seeds}));
    }
    if operations.is_empty() {
        return None;
    }
    let version = shoot.resource_version();
    operations.push(json!({"op": "add", "path": "/metadata/resourceVersion", "value": version}));
    Some(Change {
        patch: Value::Array(operations),
        tells,
    })
}

fn constraint(verdict: &Verdict, now: Time) -> Condition {
    let status = if verdict.ready {
        ConditionStatus::True
    } else {
        ConditionStatus::False
    };
    let mut constraint = Condition::new(READY_FOR_MIGRATION, status, verdict.reason, &verdict.message, now);
    constraint.codes = verdict.codes();
    constraint
}
