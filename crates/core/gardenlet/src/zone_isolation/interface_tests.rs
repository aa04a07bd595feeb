//! The isolation of zones as hooks of operations: the time of a reconciliation, and the first status.
#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]

use std::time::Duration;

use api::gardencore::Shoot;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use placement::{Isolation, Operation};
use serde_json::{Value, json};

use super::{content_at_start, schedule};
use crate::shoot::{
    dispatch::{self, ShootAction},
    operation::status::{self, OperationStart, Trigger, Writer},
    tests::{self, NOW, PERIODS, now, shoot},
};

/// An operation on seed `a` ended ten minutes ago in this state.
fn recorded(type_: &str, state: &str) -> Value {
    tests::recorded("a", type_, state)
}

/// With this zone to be cut off, and a failover of zone `z` with this status.
fn isolated(asked: &str, status: &Value, mut over: Value) -> Value {
    over["metadata"]["annotations"] = json!({"shoot.gardener.cloud/isolated-zone": asked});
    if !status.is_null() {
        over["status"]["zoneIsolation"] = json!({
            "isolatedZoneID": "z", "phase": "Failover", "status": status, "lastUpdateTime": NOW,
        });
    }
    over
}

fn condition(type_: &str, status: &str, reason: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": NOW, "lastUpdateTime": NOW})
}

/// The failover of zone `z` was refused for this reason.
fn refused(reason: &str) -> Value {
    let mut over = isolated("z", &json!("Failed"), recorded("Reconcile", "Succeeded"));
    over["status"]["conditions"] = json!([condition("ZoneIsolation", "False", reason)]);
    over
}

/// The first status of an operation, as the controller of shoots writes the status.
fn started(shoot: &Shoot, operation: Operation, trigger: Trigger) -> Value {
    let writer = Writer {
        id: "gardenlet-0".into(),
        name: "gardenlet",
        version: "0.1.0",
        seed: "a".into(),
    };
    let now = Time(now());
    let started = status::started(shoot, "dev", &writer, operation, &now);
    let start = OperationStart::new(shoot, operation, trigger);
    status::with_content(started, content_at_start(shoot, start, &now))
}

const REST: ShootAction = ShootAction::Idle(Duration::from_secs(50 * 60));

#[rstest::rstest]
// A zone is isolated or opened at once, even for a shoot with a failed operation.
#[case(isolated("z", &json!(null), recorded("Reconcile", "Succeeded")), ShootAction::Run(Operation::Reconcile))]
#[case(isolated("z", &json!(null), recorded("Reconcile", "Failed")), ShootAction::Run(Operation::Reconcile))]
#[case(isolated("", &json!("Done"), recorded("Restore", "Succeeded")), ShootAction::Run(Operation::Reconcile))]
#[case(isolated("z", &json!("Done"), recorded("Reconcile", "Succeeded")), REST)]
#[case(isolated("z", &json!("Failed"), recorded("Reconcile", "Failed")), ShootAction::GivenUp)]
// The controller of deadlines checks a refusal again, without a reconciliation.
#[case(refused("NodesUnknown"), REST)]
#[case(refused("NoOtherZone"), REST)]
fn a_change_of_the_zone_starts_a_reconciliation(#[case] over: Value, #[case] expected: ShootAction) {
    let shoot = shoot(&over);
    let schedule = schedule(&shoot, now());
    assert_eq!(dispatch::decide(&shoot, "a", PERIODS, schedule, now()), expected);
}

/// RZ-03: the reconciliation may fail for an unrelated reason. A renewed request for the zone must still take
/// effect.
#[test]
fn a_zone_that_has_failed_is_tried_again_when_it_is_asked_for_or_edited_and_not_by_itself() {
    let mut failed = recorded("Reconcile", "Error");
    failed["metadata"]["generation"] = json!(2);
    failed["metadata"]["annotations"] = json!({"shoot.gardener.cloud/isolated-zone": "az-a"});
    failed["status"]["retryCycleStartTime"] = json!(NOW);
    failed["status"]["observedGeneration"] = json!(2);
    failed["status"]["zoneIsolation"] =
        json!({"isolatedZoneID": "az-a", "phase": "Failover", "status": "Failed", "lastUpdateTime": NOW});
    let begun = |over: &Value, trigger| {
        let patch = started(&shoot(over), Operation::Reconcile, trigger);
        patch["zoneIsolation"]["status"].clone()
    };
    assert_eq!(begun(&failed, Trigger::Due), Value::Null);
    assert_eq!(begun(&failed, Trigger::Asked), "InProgress");
    failed["metadata"]["generation"] = json!(3);
    assert_eq!(begun(&failed, Trigger::Due), "InProgress");
}

/// A check that the gardenlet repeats changes no record until the refusal has passed. A check on request of a
/// user starts a new record.
#[test]
fn a_repeated_check_of_a_refusal_is_no_new_failover() {
    let refused = shoot(&refused("NodesUnknown"));
    for (trigger, begins) in [(Trigger::Due, false), (Trigger::Asked, true)] {
        let patch = started(&refused, Operation::Reconcile, trigger);
        assert_eq!(patch.get("zoneIsolation").is_some(), begins, "{trigger:?}");
    }
}

/// The list of conditions is a single field of a merge patch.
#[test]
fn the_first_status_of_an_arriving_shoot_has_the_conditions_with_the_zone() {
    let mut arriving = isolated("z", &json!(null), recorded("Migrate", "Succeeded"));
    arriving["status"]["conditions"] = json!([condition("APIServerAvailable", "True", "R")]);
    let arriving = shoot(&arriving);
    let patch = started(&arriving, Operation::Restore, Trigger::Due);
    assert_eq!(patch["zoneIsolation"]["status"], "Pending");
    let conditions = patch["conditions"].as_array().unwrap();
    let read = |field: &str| -> Vec<_> { conditions.iter().map(|one| one[field].clone()).collect() };
    assert_eq!(read("type"), ["APIServerAvailable", "ZoneIsolation"]);
    assert_eq!(read("status"), ["True", "Progressing"]);
    // Without a request for a zone, the patch reports the API server that the move has stopped.
    let mut arriving = arriving;
    arriving.metadata.annotations = None;
    let patch = started(&arriving, Operation::Restore, Trigger::Due);
    assert_eq!(patch["conditions"][0]["status"], "False");
    assert_eq!(patch.get("zoneIsolation"), None);
}

/// The source has closed the network of the zone. A destination that does not know the zone could never open
/// the network, also where the user has taken the zone back since the source died.
#[test]
fn a_restore_carries_each_zone_that_its_begin_has_recorded() {
    for asked in ["", "z"] {
        for status in ["Pending", "InProgress", "Aborting", "Done", "Failed"] {
            let arriving = isolated(asked, &json!(status), recorded("Migrate", "Aborted"));
            let patch = started(&shoot(&arriving), Operation::Restore, Trigger::Due);
            let mut begun = arriving;
            if let Some(isolation) = patch.get("zoneIsolation") {
                begun["status"]["zoneIsolation"] = isolation.clone();
            }
            let isolation = Isolation::for_shoot(&shoot(&begun), Operation::Restore, &[]);
            assert!(isolation.cuts_off(), "{asked} {status}: {isolation:?}");
        }
    }
}
