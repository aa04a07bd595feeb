//! A takeover that the API server refuses for the size of the Shoot, because the hand-over repeats the
//! specification. The refusal is reported in a smaller write: constraint `TakeoverPossible`. Each hand-over
//! drops the constraint, because the bounded status does not keep the type.

use api::{
    constants::condition::{SHOOT_TOO_LARGE, TAKEOVER_POSSIBLE},
    gardencore::{
        Shoot,
        shoot::{ApprovedBy, OwnershipApproval},
    },
    meta::{Condition, ConditionStatus, ErrorCode},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::change::on_what_was_judged;

/// The obstacle and the remedy.
#[must_use]
pub fn message(approval: &OwnershipApproval) -> String {
    format!(
        "the Shoot is too large to move: the API server refuses the takeover by seed {}, which repeats the specification; shorten \
         spec, annotations or labels of the Shoot, and ask for the takeover again",
        approval.to
    )
}

/// The report of the refusal, or `None` if the Shoot has the report. The approval of an operator ends, so
/// that the operator shortens the Shoot and asks again. An approval by silence stays: each change of the
/// Shoot starts the next attempt.
#[must_use]
pub fn report(shoot: &Shoot, approval: &OwnershipApproval, now: Time) -> Option<Value> {
    let status = shoot.status.as_ref()?;
    let mut constraint = Condition::new(
        TAKEOVER_POSSIBLE,
        ConditionStatus::False,
        SHOOT_TOO_LARGE,
        &message(approval),
        now,
    );
    constraint.codes = vec![ErrorCode::ErrConfigurationProblem];
    let mut constraints = status.constraints.clone();
    constraint.merge_into(&mut constraints);
    let mut operations = Vec::new();
    if constraints != status.constraints {
        operations.push(json!({"op": "add", "path": "/status/constraints", "value": constraints}));
    }
    if approval.by == ApprovedBy::Operator {
        operations.push(json!({"op": "remove", "path": "/status/ownership/approval"}));
    }
    (!operations.is_empty()).then(|| on_what_was_judged(shoot, operations))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use k8s_openapi::jiff::Timestamp;

    use super::*;
    use crate::shoot_migration::{Decision, change};

    fn approved(by: &str) -> Shoot {
        let approval = json!({"uid": "u", "from": "a", "to": "b", "epoch": 1, "acceptedLoss": "SinceLastSnapshot",
            "expiry": "2026-01-01T00:00:00Z", "by": by, "reason": "Because."});
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
            "metadata": {"name": "web", "uid": "u", "resourceVersion": "7"},
            "spec": {"provider": {"type": "local"}, "region": "local", "seedName": "b", "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": "a", "ownership": {"epoch": 1, "approval": approval}},
        }))
        .unwrap()
    }

    fn reported(shoot: &Shoot) -> Option<Shoot> {
        let approval = shoot.status.clone()?.ownership?.approval?;
        let patch = report(shoot, &approval, Time(Timestamp::UNIX_EPOCH))?;
        let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
        let mut written = serde_json::to_value(shoot).unwrap();
        json_patch::patch(&mut written, &patch.0).unwrap();
        Some(serde_json::from_value(written).unwrap())
    }

    #[test]
    fn a_refused_takeover_is_reported_and_the_request_of_an_operator_ends() {
        let written = reported(&approved("Operator")).unwrap();
        let status = written.status.unwrap();
        let constraint = status.constraint(TAKEOVER_POSSIBLE).unwrap();
        assert_eq!(
            (constraint.status, constraint.reason.as_str()),
            (ConditionStatus::False, SHOOT_TOO_LARGE)
        );
        assert!(
            constraint.message.contains("too large to move"),
            "{}",
            constraint.message
        );
        assert_eq!(status.ownership.unwrap().approval, None);
    }

    #[test]
    fn the_report_ends_with_the_wish_for_a_move() {
        let written = reported(&approved("Operator")).unwrap();
        let change = change(&written, None, &Decision::default(), Time(Timestamp::UNIX_EPOCH)).unwrap();
        assert_eq!(
            change.patch[0],
            json!({"op": "add", "path": "/status/constraints", "value": []})
        );
    }

    #[test]
    fn a_hand_over_drops_the_report() {
        let written = reported(&approved("Operator")).unwrap();
        let bounded = placement::bounded_status::bounded(&written);
        assert!(bounded.status.unwrap().constraints.is_empty());
    }

    /// Each write starts the next attempt, so that a repeated report would be a loop.
    #[test]
    fn a_takeover_by_silence_stays_approved_and_is_reported_once() {
        let written = reported(&approved("Silence")).unwrap();
        assert!(
            written
                .status
                .as_ref()
                .unwrap()
                .ownership
                .as_ref()
                .unwrap()
                .approval
                .is_some()
        );
        assert_eq!(reported(&written), None);
    }
}
