#![allow(clippy::unwrap_used)]
use api::constants::{SHOOT_FORCE_RESTORE, SHOOT_IGNORE};
use kube::ResourceExt as _;
use serde_json::json;

use super::*;

const WEBHOOK: &str = "HibernationPossible";

/// On seed a, wanted on seed b, with a failing edit, in generation 7.
fn shoot(status: &str, reason: &str) -> Shoot {
    let time = "2026-01-01T00:00:00Z";
    let constraint = |type_: &str, status: &str, reason: &str| {
        json!({"type": type_, "status": status, "reason": reason, "message": "m",
            "lastTransitionTime": time, "lastUpdateTime": time})
    };
    serde_json::from_value(json!({
        "metadata": {"name": "web", "generation": 7, "annotations": {SHOOT_FORCE_RESTORE: "true"}},
        "spec": {"seedName": "b", "region": "r", "provider": {"type": "t"}, "kubernetes": {}},
        "status": {"seedName": "a", "observedGeneration": 7,
            "lastOperation": {"type": "Reconcile", "state": "Error", "progress": 1, "description": "d",
                "lastUpdateTime": time},
            "constraints": [constraint(READY_FOR_MIGRATION, status, reason),
                constraint(WEBHOOK, "True", WEBHOOKS_ON_LEASES)]},
    }))
    .unwrap()
}

fn without_force(mut shoot: Shoot) -> Shoot {
    shoot.annotations_mut().remove(SHOOT_FORCE_RESTORE);
    shoot
}

fn reconciled(mut shoot: Shoot) -> Shoot {
    let hash = placement::spec_hash(&shoot.spec);
    shoot.status.as_mut().unwrap().reconciled_spec_hash = Some(hash);
    shoot
}

#[test]
fn a_request_by_force_waits_for_the_preflight_only_while_a_hold_that_force_overrides_is_reported() {
    for reason in [SHOOT_NOT_RECONCILED, SHOOT_IGNORED, WEBHOOKS_ON_LEASES] {
        assert!(awaits_force(&shoot("False", reason)), "{reason}");
        assert!(!awaits_force(&without_force(shoot("False", reason))), "{reason}");
    }
    for reason in ["DestinationSeedNotReady", "SeedEmergencyStop", BUSY, FULL] {
        assert!(!awaits_force(&shoot("False", reason)), "{reason}");
    }
}

#[test]
fn a_request_that_overrides_a_hold_waits_for_a_place_at_the_destination() {
    for (status, reason) in [("False", BUSY), ("False", FULL), ("True", "DestinationSeedReady")] {
        let held = shoot(status, reason);
        assert_eq!(forced_move(&held), Some(ForcedMove::Waits), "{reason}");
        assert_eq!(forced_move(&without_force(held.clone())), None, "{reason}");
        let mut plain = reconciled(held);
        assert_eq!(forced_move(&plain), None, "{reason}");
        let mut ignored = plain.clone();
        ignored
            .annotations_mut()
            .insert(SHOOT_IGNORE.into(), "true".into());
        assert_eq!(forced_move(&ignored), Some(ForcedMove::Waits), "{reason}");
        plain.status.as_mut().unwrap().constraints[1].status = ConditionStatus::False;
        assert_eq!(forced_move(&plain), Some(ForcedMove::Waits), "{reason}");
    }
    assert_eq!(forced_move(&shoot("False", "DestinationSeedNotReady")), None);
}

#[test]
fn a_request_is_answered_by_an_approval_of_the_present_generation_alone() {
    let mut shoot = shoot("True", "DestinationSeedReady");
    for (generation, expected) in [(7, ForcedMove::Approved), (6, ForcedMove::Waits)] {
        let approval = json!({"source": "a", "destination": "b", "generation": generation, "spec": {}});
        shoot.status.as_mut().unwrap().migration = serde_json::from_value(approval).unwrap();
        assert_eq!(forced_move(&shoot), Some(expected), "{generation}");
    }
    shoot
        .status
        .as_mut()
        .unwrap()
        .last_operation
        .as_mut()
        .unwrap()
        .type_ = api::meta::LastOperationType::Migrate;
    assert_eq!(forced_move(&shoot), None);
}
