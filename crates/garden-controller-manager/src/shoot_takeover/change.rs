//! The writes, each on exactly the version of the Shoot that was judged.

use api::{
    constants::condition::READY_FOR_MIGRATION,
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
    let operations = vec![json!({"op": "add", "path": "/status/ownership", "value": recorded(becomes)})];
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
    let last_operation = LastOperation {
        description: approval.reason.clone(),
        last_update_time: now,
        progress: 0,
        state: LastOperationState::Aborted,
        type_: LastOperationType::Migrate,
    };
    let mut operations = Vec::new();
    for (field, value) in [
        ("seedName", json!(becomes.now.seed)),
        ("ownership", json!(recorded(becomes))),
        ("formerSeeds", json!(former_seeds)),
        ("constraints", json!(constraints)),
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
    let mut all = Vec::new();
    for (field, value) in [
        (
            "seedName",
            json!(status.and_then(|status| status.seed_name.as_ref())),
        ),
        (
            "ownership",
            json!(status.and_then(|status| status.ownership.as_ref())),
        ),
    ] {
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
