//! The writes, each on exactly the version of the Shoot that was judged.

use api::{
    constants::condition::{OWNERSHIP_VERIFIED, READY_FOR_MIGRATION},
    gardencore::{
        Shoot,
        shoot::{FormerSeed, MigrationApproval, Ownership as Recorded, OwnershipApproval},
    },
    meta::{LastOperation, LastOperationState, LastOperationType},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use ownership::Ownership;
use placement::record::recorded;
use serde_json::{Value, json};

/// Records consent, or takes it back.
#[must_use]
pub fn consent(shoot: &Shoot, approval: Option<&OwnershipApproval>) -> Value {
    let status = shoot.status.as_ref();
    let before = status.and_then(|status| status.ownership.clone());
    // A shoot whose epoch nobody has recorded is in its first.
    let after = Recorded {
        approval: approval.cloned(),
        ..before.unwrap_or_else(|| Recorded::of_epoch(1))
    };
    let operations = vec![json!({"op": "add", "path": "/status/ownership", "value": after})];
    on_what_was_judged(shoot, operations)
}

/// The seed keeps the shoot in a new epoch. Nothing else of the Shoot changes: its gardenlet restores it.
#[must_use]
pub fn renew(shoot: &Shoot, becomes: &Ownership<String>) -> Value {
    let told = shoot.status.as_ref().and_then(|status| status.ownership.as_ref());
    let ownership = Recorded {
        // What is lost by earlier takeovers, until it is known how much that was, and after.
        restored: told.and_then(|told| told.restored.clone()),
        restored_before: told.map(|told| told.restored_before.clone()).unwrap_or_default(),
        ..recorded(becomes)
    };
    let operations = vec![json!({"op": "add", "path": "/status/ownership", "value": ownership})];
    on_what_was_judged(shoot, operations)
}

/// The forced hand-over, all of it in one write. It tests the seed and the whole record, and the version of the Shoot besides: a
/// test of the epoch alone would skip the data of an owner that has begun to open (docs/ownership.md, `a_grant_that_tests_the_epoch_alone`).
#[must_use]
pub fn hand_over(
    shoot: &Shoot,
    becomes: &Ownership<String>,
    approval: &OwnershipApproval,
    travels: &MigrationApproval,
    now: Time,
) -> Value {
    let status = shoot.status.clone().unwrap_or_default();
    let mut former_seeds = status.former_seeds;
    former_seeds.retain(|former| former.name != approval.from);
    former_seeds.push(FormerSeed {
        name: approval.from.clone(),
        epoch: approval.epoch,
    });
    let mut constraints = status.constraints;
    constraints.retain(|constraint| constraint.type_ != READY_FOR_MIGRATION);
    // What the former seed found says nothing of the next one.
    let mut conditions = status.conditions;
    conditions.retain(|condition| condition.type_ != OWNERSHIP_VERIFIED);
    let last_operation = LastOperation {
        description: approval.reason.clone(),
        last_update_time: now,
        progress: 0,
        state: LastOperationState::Aborted,
        type_: LastOperationType::Migrate,
    };
    // Used up by its epoch, it tells why this one began.
    let told = status.ownership.as_ref();
    let ownership = Recorded {
        approval: Some(approval.clone()),
        // What is lost by earlier takeovers, until it is known how much that was, and after.
        restored: told.and_then(|told| told.restored.clone()),
        restored_before: told.map(|told| told.restored_before.clone()).unwrap_or_default(),
        ..recorded(becomes)
    };
    let mut operations = Vec::new();
    for (field, value) in [
        ("seedName", json!(becomes.now.seed)),
        ("ownership", json!(ownership)),
        ("formerSeeds", json!(former_seeds)),
        ("constraints", json!(constraints)),
        ("conditions", json!(conditions)),
        ("lastOperation", json!(last_operation)),
        // The destination restores what was approved when the move began, or what is specified now.
        ("migration", json!(travels)),
    ] {
        operations.push(json!({"op": "add", "path": format!("/status/{field}"), "value": value}));
    }
    if !status.last_errors.is_empty() {
        operations.push(json!({"op": "remove", "path": "/status/lastErrors"}));
    }
    on_what_was_judged(shoot, operations)
}

fn on_what_was_judged(shoot: &Shoot, operations: Vec<Value>) -> Value {
    let status = shoot.status.as_ref();
    let ownership = json!(status.and_then(|status| status.ownership.as_ref()));
    let seed = json!(status.and_then(|status| status.seed_name.as_ref()));
    let mut tests = vec![("seedName".to_owned(), seed)];
    // All of the record but what seeds write as they like: a time that is read and written again need not be the same text.
    for (field, value) in ownership.as_object().into_iter().flatten() {
        if !field.starts_with("restored") {
            tests.push((format!("ownership/{field}"), value.clone()));
        }
    }
    let mut all = Vec::new();
    for (field, value) in tests {
        // What is absent cannot be tested; the version says that it still is.
        if !value.is_null() {
            all.push(json!({"op": "test", "path": format!("/status/{field}"), "value": value}));
        }
    }
    all.extend(operations);
    let version = shoot.resource_version();
    all.push(json!({"op": "add", "path": "/metadata/resourceVersion", "value": version}));
    Value::Array(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use k8s_openapi::jiff::Timestamp;
    use ownership::{Approval, Step, Writer};

    use super::*;

    /// On its way to seed-b, which has not opened anything, and wanted on seed-d.
    fn judged() -> Shoot {
        let lost = json!({"epoch": 4, "lastRevision": 832, "saved": "2025-12-31T00:00:00Z", "fenced": "2025-12-31T00:01:00Z",
            "source": {"name": "a", "epoch": 3}});
        let approval = json!({"uid": "u", "from": "b", "to": "d", "epoch": 5, "acceptedLoss": "SinceLastSnapshot",
            "expiry": "2026-01-01T00:00:00Z", "by": "Operator", "reason": "Because."});
        let conditions = ["EveryNodeReady", "OwnershipVerified"].map(|type_| {
            json!({"type": type_, "status": "True", "reason": "Any", "message": "",
                "lastTransitionTime": "2025-12-31T00:00:00Z", "lastUpdateTime": "2025-12-31T00:00:00Z"})
        });
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
            "metadata": {"name": "web", "uid": "u", "resourceVersion": "7"},
            "spec": {"provider": {"type": "local"}, "region": "local", "seedName": "d", "kubernetes": {"version": "1.34.4"}},
            "status": {
                "seedName": "b", "formerSeeds": [{"name": "c", "epoch": 4}], "lastErrors": [{"description": "d"}],
                "ownership": {"epoch": 5, "phase": "Claiming", "source": {"name": "c", "epoch": 4}, "approval": approval,
                    "restored": lost, "restoredBefore": [{"epoch": 2, "fenced": "2025-12-30T00:01:00Z", "unknown": "why"}]},
                "conditions": conditions,
            },
        }))
        .unwrap()
    }

    fn forced(shoot: &Shoot) -> json_patch::Patch {
        let now = placement::record::ownership(shoot).unwrap();
        let consent = Approval {
            from: now.now.clone(),
            to: "d".to_owned(),
        };
        let becomes = now.step(&Writer::Garden, Step::Grant(consent)).unwrap().becomes;
        let status = shoot.status.clone().unwrap();
        let approval = status.ownership.unwrap().approval.unwrap();
        let travels = MigrationApproval::default();
        let patch = hand_over(shoot, &becomes, &approval, &travels, Time(Timestamp::UNIX_EPOCH));
        serde_json::from_value(patch).unwrap()
    }

    /// R17-05, R17-20.
    #[test]
    fn a_forced_hand_over_is_one_write_of_all_of_it() {
        let shoot = judged();
        let mut written = serde_json::to_value(&shoot).unwrap();
        let [approval, restored, before] = ["approval", "restored", "restoredBefore"]
            .map(|part| written["status"]["ownership"][part].clone());
        json_patch::patch(&mut written, &forced(&shoot).0).unwrap();
        let status = &written["status"];
        assert_eq!(status["seedName"], "d");
        assert_eq!(
            status["ownership"],
            json!({"epoch": 6, "phase": "Claiming", "source": {"name": "c", "epoch": 4}, "approval": approval, "restored": restored,
                "restoredBefore": before})
        );
        assert_eq!(
            status["formerSeeds"],
            json!([{"name": "c", "epoch": 4}, {"name": "b", "epoch": 5}])
        );
        let last = &status["lastOperation"];
        assert_eq!(
            (&last["type"], &last["state"]),
            (&json!("Migrate"), &json!("Aborted"))
        );
        assert_eq!(status.get("lastErrors"), None);
        let conditions = status["conditions"].as_array().unwrap();
        let types: Vec<_> = conditions.iter().map(|condition| &condition["type"]).collect();
        assert_eq!(
            types,
            ["EveryNodeReady"],
            "what the former seed found of its owner is gone"
        );
        assert_eq!(written["metadata"]["resourceVersion"], "7");
    }

    /// What `a_grant_that_tests_the_epoch_alone` of the model breaks: the owner has begun to open in between.
    #[test]
    fn a_forced_hand_over_meets_nothing_but_what_was_judged() {
        let shoot = judged();
        for (place, value) in [
            ("/status/seedName", json!("c")),
            ("/status/ownership/epoch", json!(6)),
            ("/status/ownership/phase", json!("Opening")),
            ("/status/ownership/source/epoch", json!(3)),
            ("/status/ownership/approval/to", json!("e")),
        ] {
            let mut meanwhile = serde_json::to_value(&shoot).unwrap();
            *meanwhile.pointer_mut(place).unwrap() = value;
            let before = meanwhile.clone();
            json_patch::patch(&mut meanwhile, &forced(&shoot).0).unwrap_err();
            assert_eq!(meanwhile, before, "{place}");
        }
        // What is new since then, the version of the Shoot tells.
        let version = json!({"op": "add", "path": "/metadata/resourceVersion", "value": "7"});
        assert!(json!(forced(&shoot)).as_array().unwrap().contains(&version));
        // How a seed has written a time is nothing to it.
        let mut otherwise = serde_json::to_value(&shoot).unwrap();
        otherwise["status"]["ownership"]["restored"]["saved"] = json!("2025-12-31T00:00:00.5Z");
        otherwise["status"]["ownership"]["restoredBefore"][0]["fenced"] = json!("2025-12-30T00:01:00.0Z");
        json_patch::patch(&mut otherwise, &forced(&shoot).0).unwrap();
    }
}
