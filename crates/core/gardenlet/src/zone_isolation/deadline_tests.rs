#![allow(clippy::unwrap_used)]

use api::{
    extensions::{SubnetIsolation, Worker},
    gardencore::Shoot,
};
use futures::FutureExt as _;
use jiff::{SignedDuration, Timestamp};
use placement::Operation;
use rstest::rstest;
use serde_json::{Value, json};

use super::{Due, SeedGates, due, may_begin, operation_of, pause};

fn at(time: &str) -> Timestamp {
    format!("2026-01-01T{time}Z").parse().unwrap()
}

fn shoot(over: &Value) -> Shoot {
    let last = json!({"type": "Reconcile", "state": "Succeeded", "progress": 100, "description": "",
        "lastUpdateTime": "2026-01-01T00:00:00Z"});
    let mut base = json!({
        "metadata": {"name": "demo", "namespace": "garden-dev", "uid": "u",
            "annotations": {"shoot.gardener.cloud/isolated-zone": "z"}},
        "spec": {"region": "r", "provider": {"type": "metal"}, "seedName": "a"},
        "status": {"seedName": "a", "lastOperation": last},
    });
    json_patch::merge(&mut base, over);
    serde_json::from_value(base).unwrap()
}

/// A move, a restoration or a deletion has the seed alone.
#[test]
fn a_shoot_that_is_handed_over_or_deleted_is_left_alone() {
    let of_type =
        |type_: &str, state: &str| json!({"status": {"lastOperation": {"type": type_, "state": state}}});
    let mut leaving = of_type("Migrate", "Processing");
    leaving["spec"] = json!({"seedName": "b"});
    for (over, expected) in [
        (json!({}), Some(Operation::Reconcile)),
        (of_type("Reconcile", "Error"), Some(Operation::Reconcile)),
        (of_type("Create", "Processing"), Some(Operation::Create)),
        (
            json!({"status": {"lastOperation": null}}),
            Some(Operation::Create),
        ),
        (
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
            None,
        ),
        (leaving, None),
        (of_type("Migrate", "Error"), None),
        (of_type("Restore", "Processing"), None),
        (json!({"status": {"seedName": "b"}}), None),
    ] {
        assert_eq!(operation_of(&shoot(&over), "a"), expected, "{over}");
    }
}

#[rstest]
#[case(None, true)]
#[case(Some(("Failover", "InProgress")), true)]
#[case(Some(("Failover", "Pending")), true)]
#[case(Some(("Failover", "Aborting")), true)]
#[case(Some(("Failback", "InProgress")), true)]
#[case(Some(("Failover", "Done")), false)]
#[case(Some(("Failover", "Failed")), false)]
fn a_failover_begins_once(#[case] recorded: Option<(&str, &str)>, #[case] expected: bool) {
    let zone = recorded.map(|(phase, status)| {
        json!({"isolatedZoneID": "z", "phase": phase, "status": status, "lastUpdateTime": "2026-01-01T00:00:00Z"})
    });
    let mut shoot = shoot(&json!({"status": {"zoneIsolation": zone}}));
    assert_eq!(may_begin(&shoot, "z"), expected);
    assert!(recorded.is_none() || !may_begin(&shoot, "y"), "two zones");
    let condition = json!([{"type": "ZoneIsolation", "status": "False", "reason": "NodesUnknown", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}]);
    shoot.status.as_mut().unwrap().conditions = serde_json::from_value(condition).unwrap();
    let passes = recorded == Some(("Failover", "Failed"));
    assert_eq!(
        may_begin(&shoot, "z"),
        expected || passes,
        "a refusal that can pass"
    );
}

fn objects(left: &str, isolated: Option<(&str, bool)>, deadline: &str) -> (Worker, Option<SubnetIsolation>) {
    let annotations = json!({"extensions.gardener.cloud/isolated-zone-close-deadline": deadline});
    let metadata = json!({"name": "web", "annotations": annotations});
    let secret = json!({"name": "s", "namespace": "n"});
    let worker = json!({"metadata": metadata, "spec": {"type": "metal", "region": "r", "secretRef": secret,
        "isolatedZoneID": left, "pools": []}});
    let isolation = isolated.map(|(zone, is_deleted)| {
        let mut metadata = metadata.clone();
        if is_deleted {
            metadata["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        }
        let spec = json!({"type": "metal", "region": "r", "secretRef": secret, "isolatedZoneID": zone});
        serde_json::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    });
    (serde_json::from_value(worker).unwrap(), isolation)
}

/// RZ-32: ten minutes before the deadline the machines leave, and at the deadline the network is closed.
#[test]
fn the_deadline_is_enforced_where_no_flow_comes_so_far() {
    const DEADLINE: &str = "2026-01-01T00:15:00Z";
    let grace = SignedDuration::from_secs(45);
    for (left, isolated, copy, time, expected) in [
        ("", None, "", "00:04:59", None),
        ("", None, "", "00:05:00", Some(Due::Leave)),
        ("z", None, DEADLINE, "00:05:00", None),
        ("z", None, "2026-01-01T00:20:00Z", "00:01:00", Some(Due::Leave)),
        ("z", None, DEADLINE, "00:15:44", None),
        ("z", None, DEADLINE, "00:15:45", Some(Due::Close)),
        ("", None, "", "00:15:45", Some(Due::Close)),
        ("z", Some(("z", false)), DEADLINE, "00:15:45", None),
        ("z", Some(("z", false)), "", "00:15:45", Some(Due::Leave)),
        ("z", Some(("z", true)), DEADLINE, "00:15:45", Some(Due::Close)),
        ("z", Some(("y", false)), DEADLINE, "00:15:45", Some(Due::Close)),
    ] {
        let (worker, isolation) = objects(left, isolated, copy);
        let times = (at("00:15:00"), grace);
        let found = due(Some(&worker), isolation.as_ref(), "z", times, at(time));
        assert_eq!(found, expected, "{left} {isolated:?} {copy} {time}");
    }
    let seconds = |time: &str| pause(at("00:15:00"), grace, at(time)).as_secs();
    let times = ["00:00:00", "00:04:30", "00:15:30", "00:16:00"];
    assert_eq!(times.map(seconds), [60, 30, 15, 60]);
}

/// A flow that hands the shoot over begins when the controller has ended its work on the seed.
#[tokio::test]
async fn a_move_waits_for_work_on_the_seed() {
    let (gates, shoot) = (SeedGates::default(), shoot(&json!({})));
    let gate = gates.of_shoot(&shoot);
    let work = gate.lock().await;
    let passes = |operation| gates.pass(&shoot, operation).now_or_never().is_some();
    assert!(passes(Operation::Reconcile));
    for operation in [
        Operation::Migrate,
        Operation::Restore,
        Operation::Delete,
        Operation::ForceDelete,
    ] {
        assert!(!passes(operation), "{operation:?}");
    }
    drop(work);
    assert!(passes(Operation::Migrate));
}
