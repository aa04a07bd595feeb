//! The writes, each on exactly the version of the Shoot that was judged.

use api::{
    constants::condition::{OWNER_CHECKS_COMPLETE, OWNERSHIP_VERIFIED, READY_FOR_MIGRATION},
    gardencore::{
        Shoot,
        shoot::{FormerSeed, MigrationApproval, Ownership as Recorded, OwnershipApproval},
    },
    meta::{LastOperation, LastOperationState, LastOperationType},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use ownership::Ownership;
use placement::{
    bounded_status::{bounded, bounds},
    ownership_status::recorded,
};
use serde_json::{Value, json};

/// Conditions that the processes of a seed report in a single epoch.
const OF_THE_SEED: [&str; 2] = [OWNERSHIP_VERIFIED, OWNER_CHECKS_COMPLETE];

/// Records an approval, or removes it.
#[must_use]
pub fn consent(shoot: &Shoot, approval: Option<&OwnershipApproval>) -> Value {
    let status = shoot.status.as_ref();
    let before = status.and_then(|status| status.ownership.clone());
    // A shoot without a recorded epoch is in its first epoch.
    let after = Recorded {
        approval: approval.cloned(),
        ..before.unwrap_or_else(|| Recorded::of_epoch(1))
    };
    let operations = vec![json!({"op": "add", "path": "/status/ownership", "value": after})];
    on_what_was_judged(shoot, operations)
}

/// The seed keeps the shoot in a new epoch. After a cancelled move no other field of the Shoot changes: its
/// gardenlet restores the shoot. After an operator's request, `lastOperation` states that the shoot is to be
/// restored in place, with the current specification.
#[must_use]
pub fn renew(
    shoot: &Shoot,
    becomes: &Ownership<String>,
    approval: Option<&OwnershipApproval>,
    now: Time,
) -> Value {
    let of_seed = bounded(shoot);
    let ownership = of_new_epoch(&of_seed, becomes, approval);
    let mut operations = vec![json!({"op": "add", "path": "/status/ownership", "value": ownership})];
    let Some(approval) = approval else {
        return on_what_was_judged(shoot, operations);
    };
    let status = of_seed.status.unwrap_or_default();
    // The processes of the new epoch report again.
    let mut conditions = status.conditions;
    conditions.retain(|condition| !OF_THE_SEED.contains(&condition.type_.as_str()));
    operations.push(json!({"op": "add", "path": "/status/conditions", "value": conditions}));
    operations
        .push(json!({"op": "add", "path": "/status/lastOperation", "value": aborted(&approval.reason, now)}));
    if !status.last_errors.is_empty() {
        operations.push(json!({"op": "remove", "path": "/status/lastErrors"}));
    }
    if status.settled_seed_name.is_some() {
        operations.push(json!({"op": "remove", "path": "/status/settledSeedName"}));
    }
    // The approval of an earlier move is not the specification to restore.
    if status.migration.is_some() {
        operations.push(json!({"op": "remove", "path": "/status/migration"}));
    }
    add_bounds(shoot, &mut operations);
    on_what_was_judged(shoot, operations)
}

/// The record of a new epoch. The approval that the epoch consumed gives the reason of the epoch.
fn of_new_epoch(
    shoot: &Shoot,
    becomes: &Ownership<String>,
    approval: Option<&OwnershipApproval>,
) -> Recorded {
    let told = shoot.status.as_ref().and_then(|status| status.ownership.as_ref());
    Recorded {
        approval: approval.cloned(),
        // A copy uses the recorded end of its source epoch, and checks by the epoch in the record that the
        // record belongs to that source.
        sealed: told.and_then(|told| told.sealed.clone()),
        // The same holds for the bucket: a claim that opened nothing leaves the source as it was.
        source_bucket: told.and_then(|told| told.source_bucket.clone()),
        // The losses of earlier takeovers, before and after their size is known.
        restored: told.and_then(|told| told.restored.clone()),
        restored_before: told.map(|told| told.restored_before.clone()).unwrap_or_default(),
        seeds_stated_off: seeds_stated_off(shoot, becomes, approval),
        ..recorded(becomes)
    }
}

/// Records that these former seeds are stated to be off, beside the statements of before.
#[must_use]
pub fn state_off(shoot: &Shoot, seeds: &[FormerSeed]) -> Value {
    let ownership = shoot.status.as_ref().and_then(|status| status.ownership.as_ref());
    let mut all = ownership.map_or_else(Vec::new, |ownership| ownership.seeds_stated_off.clone());
    all.retain(|stated| !seeds.iter().any(|seed| seed.name == stated.name));
    all.extend_from_slice(seeds);
    let operations = vec![json!({"op": "add", "path": "/status/ownership/seedsStatedOff", "value": all})];
    on_what_was_judged(shoot, operations)
}

/// The statements of before and of this approval. A statement about a seed that can have left no process any
/// more is dropped.
fn seeds_stated_off(
    shoot: &Shoot,
    becomes: &Ownership<String>,
    approval: Option<&OwnershipApproval>,
) -> Vec<FormerSeed> {
    let Some(status) = &shoot.status else {
        return Vec::new();
    };
    let told = status.ownership.as_ref();
    let used = told.and_then(|told| {
        let approval = told.approval.as_ref()?;
        (told.seed_that_is_off().is_some()).then_some(approval)
    });
    let stated = [used, approval.filter(|approval| approval.source_is_off)];
    let mut all = told.map(|told| told.seeds_stated_off.clone()).unwrap_or_default();
    for approval in stated.into_iter().flatten() {
        all.retain(|stated| stated.name != approval.from);
        all.push(FormerSeed {
            name: approval.from.clone(),
            epoch: approval.epoch,
        });
    }
    let source = becomes.source.as_ref().map(|source| source.seed.as_str());
    let formers = status.former_seeds.iter().map(|former| former.name.as_str());
    // The seed that this grant takes the shoot from becomes a former seed with the same write.
    let left: Vec<_> = formers
        .chain(source)
        .chain(approval.map(|approval| approval.from.as_str()))
        .collect();
    all.retain(|stated| left.contains(&stated.name.as_str()));
    all
}

/// The `lastOperation` that makes the gardenlet of the new epoch restore the shoot (R17-20).
fn aborted(reason: &str, now: Time) -> LastOperation {
    LastOperation {
        description: reason.to_owned(),
        last_update_time: now,
        progress: 0,
        state: LastOperationState::Aborted,
        type_: LastOperationType::Migrate,
    }
}

/// The forced hand-over in a single write. The patch tests the seed and the whole record, and the version of
/// the Shoot as well. A test of the epoch alone would skip the data of an owner that has begun to open
/// (docs/understand/ownership-model.md, `a_grant_that_tests_the_epoch_alone`).
#[must_use]
pub fn hand_over(
    shoot: &Shoot,
    becomes: &Ownership<String>,
    approval: &OwnershipApproval,
    travels: &MigrationApproval,
    now: Time,
) -> Value {
    let of_seed = bounded(shoot);
    let ownership = of_new_epoch(&of_seed, becomes, Some(approval));
    let status = of_seed.status.unwrap_or_default();
    let mut former_seeds = status.former_seeds;
    former_seeds.retain(|former| former.name != approval.from);
    former_seeds.push(FormerSeed {
        name: approval.from.clone(),
        epoch: approval.epoch,
    });
    let mut constraints = status.constraints;
    constraints.retain(|constraint| constraint.type_ != READY_FOR_MIGRATION);
    // The conditions of the former seed do not apply to the next seed.
    let mut conditions = status.conditions;
    conditions.retain(|condition| !OF_THE_SEED.contains(&condition.type_.as_str()));
    let last_operation = aborted(&approval.reason, now);
    let mut operations = Vec::new();
    for (field, value) in [
        ("seedName", json!(becomes.now.seed)),
        ("ownership", json!(ownership)),
        ("formerSeeds", json!(former_seeds)),
        ("constraints", json!(constraints)),
        ("conditions", json!(conditions)),
        ("lastOperation", json!(last_operation)),
        // The destination restores the specification that was approved when the move began, or the current
        // specification.
        ("migration", json!(travels)),
    ] {
        operations.push(json!({"op": "add", "path": format!("/status/{field}"), "value": value}));
    }
    if !status.last_errors.is_empty() {
        operations.push(json!({"op": "remove", "path": "/status/lastErrors"}));
    }
    if status.settled_seed_name.is_some() {
        operations.push(json!({"op": "remove", "path": "/status/settledSeedName"}));
    }
    add_bounds(shoot, &mut operations);
    on_what_was_judged(shoot, operations)
}

/// Bounds the fields that no operation writes yet. A hostile host could otherwise fill the status, so that
/// the next seed has no room for its first write.
fn add_bounds(shoot: &Shoot, operations: &mut Vec<Value>) {
    let bounds = shoot.status.as_ref().map(bounds).unwrap_or_default();
    for (field, value) in bounds {
        let path = format!("/status/{field}");
        if operations.iter().any(|operation| operation["path"] == path) {
            continue;
        }
        operations.push(if value.is_null() {
            json!({"op": "remove", "path": path})
        } else {
            json!({"op": "add", "path": path, "value": value})
        });
    }
}

/// Adds the conditions of the write: the judged seed, record and version.
pub(super) fn on_what_was_judged(shoot: &Shoot, operations: Vec<Value>) -> Value {
    let status = shoot.status.as_ref();
    let ownership = json!(status.and_then(|status| status.ownership.as_ref()));
    let seed = json!(status.and_then(|status| status.seed_name.as_ref()));
    let mut tests = vec![("seedName".to_owned(), seed)];
    // All fields of the record except those that seeds write in their own format: a time that is parsed and
    // written again may differ as text.
    for (field, value) in ownership.as_object().into_iter().flatten() {
        if !field.starts_with("restored") {
            tests.push((format!("ownership/{field}"), value.clone()));
        }
    }
    let mut all = Vec::new();
    for (field, value) in tests {
        // JSON Patch cannot test an absent field; the resourceVersion guarantees that the field is still
        // absent.
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
#[path = "change_bounds_tests.rs"]
mod bounds_tests;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use k8s_openapi::jiff::Timestamp;
    use ownership::{Approval, Step, Writer};

    use super::*;

    /// A shoot on its way to seed-b, which has opened no data, and wanted on seed-d.
    fn judged() -> Shoot {
        let lost = json!({"epoch": 4, "lastRevision": 832, "saved": "2025-12-31T00:00:00Z", "fenced": "2025-12-31T00:01:00Z",
            "source": {"name": "a", "epoch": 3}});
        let approval = json!({"uid": "u", "from": "b", "to": "d", "epoch": 5, "acceptedLoss": "SinceLastSnapshot",
            "expiry": "2026-01-01T00:00:00Z", "by": "Operator", "reason": "Because."});
        let conditions = ["EveryNodeReady", "OwnershipVerified", "OwnerChecksComplete"].map(|type_| {
            json!({"type": type_, "status": "True", "reason": "Any", "message": "",
                "lastTransitionTime": "2025-12-31T00:00:00Z", "lastUpdateTime": "2025-12-31T00:00:00Z"})
        });
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
            "metadata": {"name": "web", "uid": "u", "resourceVersion": "7"},
            "spec": {"provider": {"type": "local"}, "region": "local", "seedName": "d", "kubernetes": {"version": "1.34.4"}},
            "status": {
                "seedName": "b", "settledSeedName": "d", "formerSeeds": [{"name": "c", "epoch": 4}], "lastErrors": [{"description": "d"}],
                "ownership": {"epoch": 5, "phase": "Claiming", "source": {"name": "c", "epoch": 4}, "approval": approval,
                    "sealed": {"epoch": 4, "revision": 9, "snapshot": "s", "sha256": "aa"},
                    "sourceBucket": {"name": "bucket-c", "epoch": 4},
                    "restored": lost, "restoredBefore": [{"epoch": 2, "fenced": "2025-12-30T00:01:00Z", "unknown": "why"}]},
                "conditions": conditions,
            },
        }))
        .unwrap()
    }

    fn forced(shoot: &Shoot) -> json_patch::Patch {
        let now = placement::ownership_status::ownership(shoot).unwrap();
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
        let parts = ["approval", "restored", "restoredBefore", "sealed", "sourceBucket"];
        let [approval, restored, before, sealed, bucket] =
            parts.map(|part| written["status"]["ownership"][part].clone());
        json_patch::patch(&mut written, &forced(&shoot).0).unwrap();
        let status = &written["status"];
        assert_eq!(status["seedName"], "d");
        assert_eq!(
            status["ownership"],
            json!({"epoch": 6, "phase": "Claiming", "source": {"name": "c", "epoch": 4}, "approval": approval, "restored": restored,
                "restoredBefore": before, "sealed": sealed, "sourceBucket": bucket})
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
        // A script that waits for the end of the move must not continue before the end.
        assert_eq!(status.get("settledSeedName"), None);
        let conditions = status["conditions"].as_array().unwrap();
        let types: Vec<_> = conditions.iter().map(|condition| &condition["type"]).collect();
        assert_eq!(
            types,
            ["EveryNodeReady"],
            "what the former seed found of its owner is gone"
        );
        assert_eq!(written["metadata"]["resourceVersion"], "7");
    }

    #[test]
    fn a_statement_is_recorded_beside_the_statements_of_before() {
        let mut shoot = judged();
        let seed = |name: &str, epoch| FormerSeed {
            name: name.into(),
            epoch,
        };
        let record = shoot.status.as_mut().unwrap().ownership.as_mut().unwrap();
        record.seeds_stated_off = vec![seed("a", 1), seed("c", 2)];
        let patch: json_patch::Patch = serde_json::from_value(state_off(&shoot, &[seed("c", 4)])).unwrap();
        let mut written = serde_json::to_value(&shoot).unwrap();
        let mut expected = written.clone();
        json_patch::patch(&mut written, &patch.0).unwrap();
        expected["status"]["ownership"]["seedsStatedOff"] =
            json!([{"name": "a", "epoch": 1}, {"name": "c", "epoch": 4}]);
        assert_eq!(written, expected, "nothing else changes");
        // The seed that claims the shoot has continued meanwhile.
        written["status"]["ownership"]["phase"] = json!("Opening");
        json_patch::patch(&mut written, &patch.0).unwrap_err();
    }

    /// The name server of a seed that is off may be off as well: without the statement, the fence of a later
    /// destination would wait for ever.
    #[test]
    fn what_was_stated_of_a_seed_survives_later_grants() {
        let stated = |shoot: &Shoot| {
            let mut written = serde_json::to_value(shoot).unwrap();
            json_patch::patch(&mut written, &forced(shoot).0).unwrap();
            written["status"]["ownership"]["seedsStatedOff"].clone()
        };
        let mut shoot = judged();
        assert_eq!(stated(&shoot), Value::Null);
        let record = |shoot: &mut Shoot| shoot.status.as_mut().unwrap().ownership.take().unwrap();
        let mut earlier = record(&mut shoot);
        earlier.seeds_stated_off = ["c", "gone"]
            .map(|name| FormerSeed {
                name: name.into(),
                epoch: 4,
            })
            .into();
        shoot.status.as_mut().unwrap().ownership = Some(earlier);
        assert_eq!(
            stated(&shoot),
            json!([{"name": "c", "epoch": 4}]),
            "the other seed can have left no process"
        );
        let mut approved = record(&mut shoot);
        approved.approval.as_mut().unwrap().source_is_off = true;
        shoot.status.as_mut().unwrap().ownership = Some(approved);
        assert_eq!(
            stated(&shoot),
            json!([{"name": "c", "epoch": 4}, {"name": "b", "epoch": 5}])
        );
    }

    /// The seed keeps data, losses and former seeds, and its gardenlet restores the shoot with the current
    /// specification.
    #[test]
    fn a_renewed_epoch_is_one_write_that_makes_its_seed_restore() {
        let mut shoot = judged();
        shoot.spec.seed_name = Some("b".to_owned());
        let status = shoot.status.as_mut().unwrap();
        status.migration = Some(MigrationApproval {
            destination: "b".to_owned(),
            ..MigrationApproval::default()
        });
        let record = status.ownership.as_mut().unwrap();
        record.phase = Some(api::gardencore::shoot::OwnershipPhase::Held);
        let approval = record.approval.as_mut().unwrap();
        approval.to = "b".to_owned();
        let approval = approval.clone();
        let now = placement::ownership_status::ownership(&shoot).unwrap();
        let consent = Approval {
            from: now.now.clone(),
            to: "b".to_owned(),
        };
        let becomes = now.step(&Writer::Garden, Step::Grant(consent)).unwrap().becomes;
        let patch = renew(&shoot, &becomes, Some(&approval), Time(Timestamp::UNIX_EPOCH));
        let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
        let mut written = serde_json::to_value(&shoot).unwrap();
        let before = written["status"].clone();
        json_patch::patch(&mut written, &patch.0).unwrap();
        let status = &written["status"];
        for same in ["seedName", "formerSeeds"] {
            assert_eq!(status[same], before[same]);
        }
        for same in ["approval", "restored", "restoredBefore"] {
            assert_eq!(status["ownership"][same], before["ownership"][same]);
        }
        let source = json!({"name": "b", "epoch": 5});
        let told = &status["ownership"];
        assert_eq!(
            (&told["epoch"], &told["phase"], &told["source"]),
            (&json!(6), &json!("Claiming"), &source)
        );
        for gone in ["lastErrors", "migration", "settledSeedName"] {
            assert_eq!(status.get(gone), None, "{gone}");
        }
        let written: Shoot = serde_json::from_value(written.clone()).unwrap();
        let restore = placement::OwnerAction::Operation(placement::Operation::Restore);
        assert_eq!(placement::wanted(&written), restore);
        assert_eq!(
            placement::traveller(&written, placement::Operation::Restore)
                .unwrap()
                .spec,
            written.spec
        );
        // A concurrent write is not overwritten.
        let mut meanwhile = serde_json::to_value(&shoot).unwrap();
        meanwhile["status"]["ownership"]["phase"] = json!("Leaving");
        json_patch::patch(&mut meanwhile, &patch.0).unwrap_err();
    }

    /// The violation of `a_grant_that_tests_the_epoch_alone` in the model: the owner has begun to open in
    /// between.
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
        // The version of the Shoot covers every later change.
        let version = json!({"op": "add", "path": "/metadata/resourceVersion", "value": "7"});
        assert!(json!(forced(&shoot)).as_array().unwrap().contains(&version));
        // The format of a time that a seed wrote does not matter.
        let mut otherwise = serde_json::to_value(&shoot).unwrap();
        otherwise["status"]["ownership"]["restored"]["saved"] = json!("2025-12-31T00:00:00.5Z");
        otherwise["status"]["ownership"]["restoredBefore"][0]["fenced"] = json!("2025-12-30T00:01:00.0Z");
        json_patch::patch(&mut otherwise, &forced(&shoot).0).unwrap();
    }
}
