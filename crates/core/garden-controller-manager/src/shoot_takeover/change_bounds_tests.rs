//! A takeover leaves the next seed room in the status of the Shoot.

#![allow(clippy::unwrap_used)]

use k8s_openapi::jiff::Timestamp;
use ownership::{Approval, Step, Writer};

use super::*;

/// Half of the bound of policy `gardenlet-size`.
const HALF: usize = 32_768;

/// A shoot on seed-a whose status seed-a has filled, with the approval for this seed.
fn filled(to: &str) -> Shoot {
    let padding = "x".repeat(9000);
    let approval = json!({"uid": "u", "from": "a", "to": to, "epoch": 1, "acceptedLoss": "SinceLastSnapshot",
        "expiry": "2026-01-01T00:00:00Z", "by": "Operator", "reason": "Because."});
    let condition = |type_: &str| {
        json!({"type": type_, "status": "True", "reason": "Any", "message": padding,
            "lastTransitionTime": "2025-12-31T00:00:00Z", "lastUpdateTime": "2025-12-31T00:00:00Z"})
    };
    let restored = json!({"epoch": 1, "fenced": "2025-12-31T00:00:00Z", "unknown": padding});
    serde_json::from_value(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": "web", "uid": "u", "resourceVersion": "7"},
        "spec": {"provider": {"type": "local"}, "region": "local", "seedName": to, "kubernetes": {"version": "1.34.4"}},
        "status": {
            "seedName": "a", "ownership": {"epoch": 1, "phase": "Held", "approval": approval, "restored": restored},
            "conditions": [condition("EveryNodeReady"), condition("OfTheAttacker")],
            "constraints": [condition("ShootStateUpToDate"), condition("OfTheAttacker")],
            "lastErrors": [{"description": padding}], "encryptedResources": [padding], "clusterIdentity": padding,
        },
    }))
    .unwrap()
}

fn granted(shoot: &Shoot, to: &str) -> (Ownership<String>, OwnershipApproval) {
    let now = placement::ownership_status::ownership(shoot).unwrap();
    let consent = Approval {
        from: now.now.clone(),
        to: to.to_owned(),
    };
    let becomes = now.step(&Writer::Garden, Step::Grant(consent)).unwrap().becomes;
    let ownership = shoot.status.as_ref().unwrap().ownership.as_ref();
    (becomes, ownership.unwrap().approval.clone().unwrap())
}

fn written(shoot: &Shoot, patch: Value) -> Value {
    let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
    let mut written = json!(shoot);
    json_patch::patch(&mut written, &patch.0).unwrap();
    written["status"].clone()
}

#[test]
fn a_takeover_and_a_new_epoch_remove_what_a_host_has_filled() {
    let now = || Time(Timestamp::UNIX_EPOCH);
    let shoot = filled("b");
    let (becomes, approval) = granted(&shoot, "b");
    let travels = MigrationApproval::default();
    let taken = written(&shoot, hand_over(&shoot, &becomes, &approval, &travels, now()));
    assert_eq!(
        (&taken["seedName"], &taken["ownership"]["epoch"]),
        (&json!("b"), &json!(2))
    );
    let shoot = filled("a");
    let (becomes, approval) = granted(&shoot, "a");
    let renewed = written(&shoot, renew(&shoot, &becomes, Some(&approval), now()));
    assert_eq!(renewed["seedName"], "a");
    assert!(json!(shoot.status).to_string().len() > 2 * HALF);
    for status in [taken, renewed] {
        let length = status.to_string().len();
        assert!(length < HALF / 4, "{length}: {status}");
        for (list, type_) in [
            ("conditions", "EveryNodeReady"),
            ("constraints", "ShootStateUpToDate"),
        ] {
            let list = status[list].as_array().unwrap();
            assert_eq!(list.len(), 1, "{list:?}");
            // garden-controller-manager reads the reason of this constraint.
            assert_eq!(
                (&list[0]["type"], &list[0]["reason"]),
                (&json!(type_), &json!("Any"))
            );
        }
        assert_eq!(status.get("encryptedResources"), None);
    }
}
