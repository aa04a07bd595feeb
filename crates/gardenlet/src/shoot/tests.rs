//! Tables for who acts and what is recorded; no cluster.

use std::time::Duration;

use api::{
    gardencore::Shoot,
    meta::{ErrorCode, LastOperationState as State, LastOperationType as Type},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::{
    dispatch::{self, Periods, Step},
    status::{self, Writer},
};

const PERIODS: Periods = Periods {
    sync: Duration::from_secs(3600),
};
const NOW: &str = "2026-01-01T12:00:00Z";

fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A Shoot of generation 2 with the given fields laid over it.
fn shoot(over: Value) -> Shoot {
    let mut base = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": "demo", "namespace": "garden-dev", "uid": "u-1", "generation": 2},
        "spec": {"region": "r", "provider": {"type": "local"}, "kubernetes": {"version": "1.34.4"},
                 "cloudProfile": {"name": "local", "kind": "CloudProfile"}, "seedName": "a"},
    });
    merge(&mut base, over);
    serde_json::from_value(base).unwrap()
}

fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

fn last(type_: &str, state: &str, minutes_ago: i64) -> Value {
    let time = now() - jiff::SignedDuration::from_mins(minutes_ago);
    json!({"type": type_, "state": state, "progress": 0, "description": "", "lastUpdateTime": time.to_string()})
}

fn recorded(seed: &str, type_: &str, state: &str) -> Value {
    json!({"status": {"seedName": seed, "observedGeneration": 2, "lastOperation": last(type_, state, 10)}})
}

#[rstest::rstest]
// A new Shoot is created by the seed that its specification names.
#[case(json!({}), "a", Step::Reconcile(Type::Create))]
#[case(json!({}), "b", Step::NotResponsible)]
#[case(json!({"spec": {"seedName": null}}), "a", Step::NotResponsible)]
#[case(recorded("a", "Create", "Error"), "a", Step::Reconcile(Type::Create))]
// A move is prepared by the source; the destination waits (I1).
#[case(json!({"spec": {"seedName": "b"}, "status": recorded("a", "Reconcile", "Succeeded")["status"]}), "a", Step::Migrate)]
#[case(json!({"spec": {"seedName": "b"}, "status": recorded("a", "Reconcile", "Succeeded")["status"]}), "b", Step::NotResponsible)]
#[case(json!({"spec": {"seedName": "b"}, "status": recorded("a", "Migrate", "Error")["status"]}), "a", Step::Migrate)]
// After the hand-over the destination restores, until that has succeeded, and the source does nothing.
#[case(json!({"spec": {"seedName": "b"}, "status": recorded("b", "Migrate", "Succeeded")["status"]}), "b", Step::Reconcile(Type::Restore))]
#[case(json!({"spec": {"seedName": "b"}, "status": recorded("b", "Migrate", "Succeeded")["status"]}), "a", Step::NotResponsible)]
#[case(json!({"spec": {"seedName": "b"}, "status": recorded("b", "Restore", "Error")["status"]}), "b", Step::Reconcile(Type::Restore))]
#[case(json!({"spec": {"seedName": "b"}, "status": recorded("b", "Restore", "Processing")["status"]}), "b", Step::Reconcile(Type::Restore))]
// A Shoot that was never created cannot move: the seed in the specification creates it (R7-43).
#[case(json!({"spec": {"seedName": "b"}, "status": {"lastOperation": last("Create", "Error", 1)}}), "b", Step::Reconcile(Type::Create))]
// One that is well is left alone for the rest of the sync period.
#[case(recorded("a", "Restore", "Succeeded"), "a", Step::Idle(Duration::from_secs(50 * 60)))]
#[case(recorded("a", "Reconcile", "Succeeded"), "a", Step::Idle(Duration::from_secs(50 * 60)))]
#[case(json!({"status": {"seedName": "a", "observedGeneration": 2, "lastOperation": last("Reconcile", "Succeeded", 61)}}), "a", Step::Reconcile(Type::Reconcile))]
#[case(json!({"status": {"seedName": "a", "observedGeneration": 1, "lastOperation": last("Reconcile", "Succeeded", 1)}}), "a", Step::Reconcile(Type::Reconcile))]
#[case(json!({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}, "status": recorded("a", "Reconcile", "Succeeded")["status"]}), "a", Step::Reconcile(Type::Reconcile))]
// `retry` means something only for one that was given up.
#[case(json!({"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}, "status": recorded("a", "Reconcile", "Succeeded")["status"]}), "a", Step::Idle(Duration::from_secs(50 * 60)))]
#[case(recorded("a", "Reconcile", "Failed"), "a", Step::GivenUp)]
#[case(json!({"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}, "status": recorded("a", "Reconcile", "Failed")["status"]}), "a", Step::Reconcile(Type::Reconcile))]
#[case(json!({"spec": {"seedName": "b"}, "status": recorded("b", "Restore", "Failed")["status"]}), "b", Step::GivenUp)]
// A new specification is a new chance.
#[case(json!({"metadata": {"generation": 3}, "status": recorded("a", "Reconcile", "Failed")["status"]}), "a", Step::Reconcile(Type::Reconcile))]
// Deletion goes before everything, at the seed where the control plane is.
#[case(json!({"metadata": {"deletionTimestamp": NOW}, "spec": {"seedName": "b"}, "status": recorded("a", "Migrate", "Error")["status"]}), "a", Step::Delete)]
#[case(json!({"metadata": {"deletionTimestamp": NOW}, "status": recorded("a", "Delete", "Failed")["status"]}), "a", Step::GivenUp)]
#[case(json!({"metadata": {"deletionTimestamp": NOW, "annotations": {"confirmation.gardener.cloud/force-deletion": "true"}}, "status": recorded("a", "Delete", "Failed")["status"]}), "a", Step::ForceDelete)]
fn the_step_follows_from_the_object(#[case] over: Value, #[case] seed: &str, #[case] expected: Step) {
    assert_eq!(dispatch::decide(&shoot(over), seed, PERIODS, now()), expected);
}

/// I1: whatever spec and status say, no two seeds act.
#[test]
fn at_most_one_seed_is_responsible() {
    let names = [None, Some(""), Some("a"), Some("b"), Some("c")];
    for spec in names {
        for status in names {
            let shoot = shoot(json!({"spec": {"seedName": spec}, "status": {"seedName": status}}));
            let acting: Vec<_> = ["a", "b", "c"]
                .into_iter()
                .filter(|seed| dispatch::decide(&shoot, seed, PERIODS, now()) != Step::NotResponsible)
                .collect();
            assert!(
                acting.len() <= 1,
                "spec {spec:?} and status {status:?}: {acting:?} act"
            );
        }
    }
}

fn writer() -> Writer {
    Writer {
        id: "gardenlet-0".into(),
        name: "gardenlet",
        version: "0.1.0",
        seed: "a".into(),
    }
}

#[test]
fn the_first_write_records_the_seed_before_anything_is_made_there() {
    let patch = status::started(&shoot(json!({})), &writer(), Type::Create, &Time(now()));
    assert_eq!(patch["seedName"], "a");
    assert_eq!(patch["technicalID"], "shoot--dev--demo");
    assert_eq!(patch["uid"], "u-1");
    assert_eq!(patch["observedGeneration"], 2);
    assert_eq!(
        patch["lastOperation"]["description"],
        "Reconciliation of Shoot cluster initialized."
    );
}

#[test]
fn a_migration_names_the_new_seed_only_when_it_has_succeeded() {
    let moving = shoot(
        json!({"spec": {"seedName": "b"}, "status": recorded("a", "Reconcile", "Succeeded")["status"]}),
    );
    let started = status::started(&moving, &writer(), Type::Migrate, &Time(now()));
    assert!(started.get("seedName").is_none(), "{started}");
    let succeeded = status::succeeded(&moving, Type::Migrate, Time(now()));
    assert_eq!(succeeded["seedName"], "b");
    assert_eq!(
        succeeded["lastOperation"]["description"],
        "Shoot cluster has been successfully prepared for migration."
    );
}

#[test]
fn a_retry_keeps_the_errors_and_the_start_of_the_cycle() {
    let again = shoot(recorded("a", "Reconcile", "Error"));
    let patch = status::started(&again, &writer(), Type::Reconcile, &Time(now()));
    assert!(
        patch.get("lastErrors").is_none() && patch.get("retryCycleStartTime").is_none(),
        "{patch}"
    );
}

#[test]
fn an_operation_is_given_up_only_after_the_retry_duration() {
    let errors = [status::single_error(
        "Create botanist",
        &runtime::Error::config(ErrorCode::ErrConfigurationProblem, "no such CloudProfile"),
        &Time(now()),
    )];
    let day = Duration::from_secs(12 * 3600);
    for (began, state) in [
        ("2026-01-01T11:00:00Z", State::Error),
        ("2025-12-31T23:00:00Z", State::Failed),
    ] {
        let shoot = shoot(json!({"status": {"retryCycleStartTime": began}}));
        let patch = status::failed(&shoot, Type::Reconcile, 30, &errors, day, Time(now()));
        assert_eq!(patch["lastOperation"]["state"], json!(state));
        assert_eq!(
            patch["lastErrors"][0]["codes"],
            json!(["ERR_CONFIGURATION_PROBLEM"])
        );
        assert_eq!(patch["lastErrors"][0]["taskID"], "Create botanist");
    }
}

#[test]
fn an_error_of_a_flow_names_its_task_and_codes() {
    let error = flow::FlowError {
        flow: "f",
        failures: vec![flow::TaskFailure {
            task: "Deploying main and events etcd",
            cause: flow::Cause::TimedOut {
                after: Duration::from_secs(30),
                last: Some(runtime::Error::config(
                    ErrorCode::ErrInfraUnauthenticated,
                    "the bucket refuses the credentials",
                )),
            },
            attempts: 3,
        }],
        report: flow::Report::default(),
    };
    let errors = status::last_errors(&error, &Time(now()));
    assert_eq!(
        errors[0].task_id.as_deref(),
        Some("Deploying main and events etcd")
    );
    assert_eq!(errors[0].codes, [ErrorCode::ErrInfraUnauthenticated]);
    assert!(
        errors[0].description.contains("refuses the credentials"),
        "{}",
        errors[0].description
    );
}

#[test]
fn a_move_that_cannot_begin_is_told_once_where_errors_are_looked_for() {
    let waiting = shoot(
        json!({"spec": {"seedName": "nowhere"}, "status": {"seedName": "a", "constraints": [{
            "type": "ReadyForMigration", "status": "False", "reason": "DestinationSeedNotFound",
            "message": "There is no seed nowhere: register it.", "codes": ["ERR_CONFIGURATION_PROBLEM"],
            "lastTransitionTime": NOW, "lastUpdateTime": NOW,
        }]}}),
    );
    let constraint = |shoot: &Shoot| {
        let status = shoot.status.clone().unwrap();
        status.constraint("ReadyForMigration").unwrap().clone()
    };
    let patch = status::move_cannot_begin(&waiting, &constraint(&waiting), &Time(now())).unwrap();
    assert_eq!(
        patch["lastErrors"][0]["codes"],
        json!(["ERR_CONFIGURATION_PROBLEM"])
    );
    assert!(
        patch["lastErrors"][0]["description"]
            .as_str()
            .unwrap()
            .contains("register it")
    );
    // Nothing else of the status changes (I8), and nothing is written again and again.
    assert_eq!(patch.as_object().unwrap().len(), 1);
    let mut told = waiting.clone();
    told.status.as_mut().unwrap().last_errors = serde_json::from_value(patch["lastErrors"].clone()).unwrap();
    assert!(status::move_cannot_begin(&told, &constraint(&told), &Time(now())).is_none());
    let mut ready = constraint(&waiting);
    ready.status = api::meta::ConditionStatus::True;
    assert!(status::move_cannot_begin(&waiting, &ready, &Time(now())).is_none());
}
