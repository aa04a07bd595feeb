//! Tables for the acting seed and for the recorded status; no cluster.

use std::time::Duration;

use api::{
    gardencore::Shoot,
    meta::{ErrorCode, LastOperationState as State, LastOperationType as Type},
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use placement::Operation;
use serde_json::{Value, json};

use super::{
    dispatch::{self, Periods, ShootAction},
    operation::{
        confirmation,
        failure::{class_of, flow_errors, single_error},
        first_status,
        status::{self, Writer},
    },
    operation_hooks::HookSchedule,
};

mod moving;
mod reconciled;
mod solved_errors;
mod started;

pub(crate) const PERIODS: Periods = Periods {
    sync: Duration::from_secs(3600),
};
pub(crate) const NOW: &str = "2026-01-01T12:00:00Z";

pub(crate) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

/// A Shoot of generation 2, merged with the given fields.
pub(crate) fn shoot(over: &Value) -> Shoot {
    let mut base = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": "demo", "namespace": "garden-dev", "uid": "u-1", "generation": 2},
        "spec": {"region": "r", "provider": {"type": "local"}, "kubernetes": {"version": "1.34.4"},
                 "cloudProfile": {"name": "local", "kind": "CloudProfile"}, "seedName": "a"},
    });
    json_patch::merge(&mut base, over);
    serde_json::from_value(base).unwrap()
}

fn last(type_: &str, state: &str, minutes_ago: i64) -> Value {
    let time = now() - jiff::SignedDuration::from_mins(minutes_ago);
    json!({"type": type_, "state": state, "progress": 0, "description": "", "lastUpdateTime": time.to_string()})
}

const DELETION: &str = "confirmation.gardener.cloud/deletion";
const FORCE: &str = "confirmation.gardener.cloud/force-deletion";

/// The same, being deleted, with these annotations set to true.
fn deleted(annotations: &[&str], mut over: Value) -> Value {
    let annotations: serde_json::Map<String, Value> = annotations
        .iter()
        .map(|name| ((*name).to_owned(), json!("true")))
        .collect();
    json_patch::merge(
        &mut over,
        &json!({"metadata": {"deletionTimestamp": NOW, "annotations": annotations}}),
    );
    over
}

pub(crate) fn recorded(seed: &str, type_: &str, state: &str) -> Value {
    json!({"status": {"seedName": seed, "observedGeneration": 2, "lastOperation": last(type_, state, 10)}})
}

/// A Shoot that wants to move from `a` to `b`, with approval.
fn approved(mut status: Value) -> Value {
    status["migration"] = json!({"source": "a", "destination": "b", "generation": 2, "spec": {}});
    json!({"spec": {"seedName": "b"}, "status": status})
}

#[rstest::rstest]
// A new Shoot is created by the seed that its specification names.
#[case(json!({}), "a", ShootAction::Run(Operation::Create))]
#[case(json!({}), "b", ShootAction::NotResponsible)]
#[case(json!({"spec": {"seedName": null}}), "a", ShootAction::NotResponsible)]
// The source prepares an approved move; the destination waits (I1).
#[case(json!({"spec": {"seedName": "b"}, "status": recorded("a", "Reconcile", "Succeeded")["status"]}), "a", ShootAction::Idle(Duration::from_secs(50 * 60)))]
#[case(approved(recorded("a", "Reconcile", "Succeeded")["status"].clone()), "a", ShootAction::Run(Operation::Migrate))]
#[case(approved(recorded("a", "Reconcile", "Succeeded")["status"].clone()), "b", ShootAction::NotResponsible)]
// After the hand-over the destination restores, until that has succeeded, and the source cleans up.
#[case(json!({"spec": {"seedName": "b"}, "status": {"seedName": "b", "observedGeneration": 2, "formerSeeds": [{"name": "a", "epoch": 1}], "lastOperation": last("Migrate", "Succeeded", 1)}}), "b", ShootAction::Run(Operation::Restore))]
#[case(json!({"spec": {"seedName": "b"}, "status": {"seedName": "b", "observedGeneration": 2, "formerSeeds": [{"name": "a", "epoch": 1}], "lastOperation": last("Migrate", "Succeeded", 1)}}), "a", ShootAction::Leave(1))]
#[case(json!({"spec": {"seedName": "b"}, "status": recorded("b", "Restore", "Processing")["status"]}), "a", ShootAction::NotResponsible)]
// A healthy shoot is not reconciled for the rest of the sync period.
#[case(recorded("a", "Restore", "Succeeded"), "a", ShootAction::Idle(Duration::from_secs(50 * 60)))]
#[case(recorded("a", "Reconcile", "Succeeded"), "a", ShootAction::Idle(Duration::from_secs(50 * 60)))]
#[case(json!({"status": {"seedName": "a", "observedGeneration": 2, "lastOperation": last("Reconcile", "Succeeded", 61)}}), "a", ShootAction::Run(Operation::Reconcile))]
#[case(json!({"status": {"seedName": "a", "observedGeneration": 1, "lastOperation": last("Reconcile", "Succeeded", 1)}}), "a", ShootAction::Run(Operation::Reconcile))]
#[case(json!({"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}, "status": recorded("a", "Reconcile", "Succeeded")["status"]}), "a", ShootAction::Run(Operation::Reconcile))]
// `retry` has an effect only on a failed operation.
#[case(json!({"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}, "status": recorded("a", "Reconcile", "Succeeded")["status"]}), "a", ShootAction::Idle(Duration::from_secs(50 * 60)))]
#[case(recorded("a", "Reconcile", "Failed"), "a", ShootAction::GivenUp)]
#[case(json!({"metadata": {"annotations": {"gardener.cloud/operation": "retry"}}, "status": recorded("a", "Reconcile", "Failed")["status"]}), "a", ShootAction::Run(Operation::Reconcile))]
#[case(json!({"spec": {"seedName": "b"}, "status": recorded("b", "Restore", "Failed")["status"]}), "b", ShootAction::GivenUp)]
// An edit of the specification restarts a failed operation.
#[case(json!({"metadata": {"generation": 3}, "status": recorded("a", "Reconcile", "Failed")["status"]}), "a", ShootAction::Run(Operation::Reconcile))]
// A failed and cancelled move restores the shoot in the same seed.
#[case(recorded("a", "Migrate", "Failed"), "a", ShootAction::Run(Operation::Restore))]
// A deletion in the middle of a move first restores the shoot, so that the shoot can be deleted.
#[case(deleted(&[DELETION], json!({"spec": {"seedName": "b"}, "status": recorded("a", "Migrate", "Error")["status"]})), "a", ShootAction::Run(Operation::Restore))]
#[case(deleted(&[DELETION], recorded("a", "Reconcile", "Succeeded")), "a", ShootAction::Run(Operation::Delete))]
#[case(deleted(&[DELETION], recorded("a", "Delete", "Failed")), "a", ShootAction::GivenUp)]
#[case(deleted(&[DELETION, FORCE], recorded("a", "Delete", "Failed")), "a", ShootAction::Run(Operation::ForceDelete))]
#[case(deleted(&[], recorded("a", "Reconcile", "Failed")), "a", ShootAction::Unconfirmed)]
fn the_step_follows_from_the_object(#[case] over: Value, #[case] seed: &str, #[case] expected: ShootAction) {
    assert_eq!(
        dispatch::decide(&shoot(&over), seed, PERIODS, HookSchedule::default(), now()),
        expected
    );
}

/// The status reports the missing confirmation once in `lastErrors`, with the annotation to set.
#[test]
fn a_deletion_that_nobody_confirmed_is_told() {
    let now = Time(now());
    let unconfirmed = deleted(&[], recorded("a", "Reconcile", "Succeeded"));
    let told = confirmation::is_missing(&shoot(&unconfirmed), &now).unwrap();
    let sentence = told["lastErrors"][0]["description"].as_str().unwrap();
    assert!(
        sentence.contains("confirmation.gardener.cloud/deletion=true"),
        "{sentence}"
    );
    let mut again = unconfirmed;
    json_patch::merge(&mut again, &json!({"status": told}));
    assert_eq!(confirmation::is_missing(&shoot(&again), &now), None);
}

/// I1: for every specification and status, at most one seed runs a flow with external effects.
#[test]
fn at_most_one_seed_runs_an_operation() {
    let names = [None, Some(""), Some("a"), Some("b"), Some("c")];
    for spec in names {
        for status in names {
            let shoot = shoot(&json!({"spec": {"seedName": spec}, "status": {"seedName": status,
                "formerSeeds": [{"name": "c", "epoch": 1}]}}));
            let acting: Vec<_> = ["a", "b", "c"]
                .into_iter()
                .filter(|seed| {
                    let step = dispatch::decide(&shoot, seed, PERIODS, HookSchedule::default(), now());
                    !matches!(step, ShootAction::NotResponsible | ShootAction::Leave(_))
                })
                .collect();
            assert!(
                acting.len() <= 1,
                "spec {spec:?} and status {status:?}: {acting:?} act"
            );
        }
    }
}

/// A task must not fail while the part that the task awaits is still within the timeout of that part.
#[test]
fn no_wait_is_longer_than_the_patience_of_its_flow() {
    let timeouts = parts::Timeouts::default();
    for wait in [
        timeouts.infrastructure.timeout,
        timeouts.worker.timeout,
        timeouts.extension.timeout,
        timeouts.dns_record.timeout,
        timeouts.backup_entry.timeout,
        timeouts.etcd.timeout,
        timeouts.etcd_copy.timeout,
        timeouts.snapshot,
        timeouts.kube_apiserver,
        timeouts.namespace,
        timeouts.managed_resources,
        timeouts.cleanup,
    ] {
        assert!(wait < super::flows::graph::RETRY_LIMIT, "{wait:?}");
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

/// A shoot is hibernated once all parts sleep, and is no longer hibernated as soon as a part is about to
/// wake.
#[test]
fn a_shoot_sleeps_from_the_end_of_one_operation_to_the_begin_of_another() {
    let now = || Time(now());
    let begun = |enabled: bool, operation| {
        let sleeping =
            shoot(&json!({"spec": {"hibernation": {"enabled": enabled}}, "status": {"hibernated": true}}));
        status::started(&sleeping, "dev", &writer(), operation, &now())["hibernated"].clone()
    };
    assert_eq!(begun(false, Operation::Reconcile), json!(false));
    assert_eq!(begun(false, Operation::Restore), json!(false));
    for operation in [
        Operation::Reconcile,
        Operation::Restore,
        Operation::Migrate,
        Operation::Delete,
    ] {
        assert_eq!(begun(true, operation), Value::Null, "{operation:?}");
    }
    // A move wakes only etcd, for either value of `hibernation.enabled`. A repeated deletion must find the
    // shoot asleep.
    assert_eq!(begun(false, Operation::Migrate), Value::Null);
    assert_eq!(begun(false, Operation::Delete), Value::Null);
    let ended = |enabled: bool, operation| {
        let shoot = shoot(&json!({"spec": {"hibernation": {"enabled": enabled}}}));
        status::settled(&shoot, operation, now())["hibernated"].clone()
    };
    for operation in [Operation::Create, Operation::Reconcile, Operation::Restore] {
        assert_eq!(ended(true, operation), json!(true));
        assert_eq!(ended(false, operation), json!(false));
    }
    assert_eq!(ended(true, Operation::Delete), Value::Null);
}

fn end(epoch: i64) -> api::gardencore::shoot::SealedEpoch {
    api::gardencore::shoot::SealedEpoch {
        epoch,
        revision: 54,
        snapshot: "Full-00000000-00000054-9.gz.final".into(),
        sha256: "a".repeat(64),
    }
}

#[test]
fn the_hand_over_names_the_new_seed_and_begins_a_new_history() {
    let moving = shoot(&approved(
        recorded("a", "Migrate", "Processing")["status"].clone(),
    ));
    let started = status::started(&moving, "dev", &writer(), Operation::Migrate, &Time(now()));
    assert!(started.get("seedName").is_none(), "{started}");
    let written = status::handed_over(&moving, &end(1), &Time(now())).unwrap();
    assert_eq!(written["seedName"], "b");
    assert_eq!(written["ownership"], json!({"epoch": 2, "sealed": end(1)}));
    assert_eq!(written["formerSeeds"], json!([{"name": "a", "epoch": 1}]));
    assert_eq!(
        written["lastOperation"]["description"],
        "Shoot cluster has been successfully prepared for migration."
    );
    // The next move, while the first source has not cleaned up yet.
    let mut again = moving.clone();
    let status = again.status.as_mut().unwrap();
    status.ownership = Some(api::gardencore::shoot::Ownership::of_epoch(7));
    status.former_seeds = vec![api::gardencore::shoot::FormerSeed {
        name: "c".into(),
        epoch: 6,
    }];
    let written = status::handed_over(&again, &end(7), &Time(now())).unwrap();
    assert_eq!(written["ownership"], json!({"epoch": 8, "sealed": end(7)}));
    assert_eq!(
        written["formerSeeds"],
        json!([{"name": "c", "epoch": 6}, {"name": "a", "epoch": 7}])
    );
}

/// A merge patch keeps the fields that the patch omits. The record of an earlier epoch must not become the
/// record of the next epoch.
#[test]
fn a_hand_over_begins_a_new_record_where_phases_are_recorded() {
    let mut moving = shoot(&approved(
        recorded("a", "Migrate", "Processing")["status"].clone(),
    ));
    let mut in_phase = |phase: &str| {
        let record = json!({"epoch": 7, "phase": phase, "drained": true, "chain": "Final", "source": {"name": "c", "epoch": 6}});
        moving.status.as_mut().unwrap().ownership = serde_json::from_value(record).unwrap();
        status::handed_over(&moving, &end(7), &Time(now()))
    };
    for phase in ["Held", "Leaving", "Sealing"] {
        assert_eq!(
            in_phase(phase).unwrap()["ownership"],
            json!({"epoch": 8, "phase": "Claiming", "source": {"name": "a", "epoch": 7}, "chain": null, "drained": true,
                "sealed": end(7)})
        );
    }
    // The data are not in this seed's own bucket yet.
    for phase in ["Claiming", "Opening"] {
        assert_eq!(in_phase(phase), None);
    }
}

/// Otherwise a takeover from a seed without owner checks would count as protected by a fence.
#[test]
fn what_a_seed_found_of_its_owner_is_not_handed_over() {
    let mut moving = shoot(&approved(
        recorded("a", "Migrate", "Processing")["status"].clone(),
    ));
    assert_eq!(
        status::handed_over(&moving, &end(1), &Time(now()))
            .unwrap()
            .get("conditions"),
        None
    );
    let condition = |type_: &str| {
        json!({"type": type_, "status": "True", "reason": "Any", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
            "lastUpdateTime": "2026-01-01T00:00:00Z"})
    };
    let all = json!([condition("EveryNodeReady"), condition("OwnershipVerified")]);
    moving.status.as_mut().unwrap().conditions = serde_json::from_value(all).unwrap();
    let patch = status::handed_over(&moving, &end(1), &Time(now())).unwrap();
    assert_eq!(patch["conditions"].as_array().unwrap().len(), 1);
    assert_eq!(patch["conditions"][0]["type"], "EveryNodeReady");
}

/// The user named a different destination, or no destination, at the last moment.
#[test]
fn a_move_that_is_not_approved_as_it_is_wanted_now_is_not_handed_over() {
    let mut moving = shoot(&approved(
        recorded("a", "Migrate", "Processing")["status"].clone(),
    ));
    moving.spec.seed_name = Some("c".into());
    assert_eq!(status::handed_over(&moving, &end(1), &Time(now())), None);
    moving.spec.seed_name = Some("a".into());
    assert_eq!(status::handed_over(&moving, &end(1), &Time(now())), None);
}

fn failures(causes: Vec<flow::Cause<runtime::Error>>) -> flow::FlowError<runtime::Error> {
    let failure = |cause| flow::TaskFailure {
        task: "Waiting",
        cause,
        attempts: 1,
    };
    flow::FlowError {
        flow: "f",
        failures: causes.into_iter().map(failure).collect(),
        report: flow::Report::default(),
    }
}

#[test]
fn the_class_of_an_error_travels_through_a_flow() {
    use flow::Cause::{Error as Failed, TimedOut};
    use runtime::Error;
    let of = |causes| class_of(&failures(causes)).class();
    let second = Duration::from_secs(1);
    let waits = || Failed(Error::not_ready(second, "the approval"));
    assert_eq!(of(vec![waits(), waits()]), "NotReady");
    assert_eq!(of(vec![waits(), Failed(Error::transient("x"))]), "Transient");
    assert_eq!(
        of(vec![
            Failed(Error::NotOwner("b acts".into())),
            Failed(Error::transient("x"))
        ]),
        "NotOwner"
    );
    let code = ErrorCode::ErrInfraUnauthenticated;
    let last = Some(Error::config(code, "the bucket refuses"));
    assert_eq!(of(vec![TimedOut { after: second, last }, waits()]), "Config");
    let last = Some(Error::not_ready(second, "an answer"));
    assert_eq!(of(vec![TimedOut { after: second, last }]), "Transient");
}

#[test]
fn the_error_of_a_flow_keeps_the_source_of_the_first_failure() {
    use flow::Cause::Error as Failed;
    use runtime::{Error, error::with_causes};
    let refused = std::io::Error::new(std::io::ErrorKind::ConnectionRefused, "connection refused");
    let silent = Error::transient(runtime::ErrorMessage::with_source("no answer", refused));
    let flow = failures(vec![Failed(silent), Failed(Error::transient("x"))]);
    let error = class_of(&flow);
    assert_eq!(error.to_string(), flow.to_string());
    let expected = format!("{error}: connection refused");
    assert_eq!(with_causes(&error), expected);
    assert_eq!(format!("{error:#}"), expected);
}

#[test]
fn an_operation_is_given_up_only_after_the_retry_duration() {
    let errors = [single_error(
        "Collecting facts",
        &runtime::Error::config(ErrorCode::ErrConfigurationProblem, "no such CloudProfile"),
        &Time(now()),
    )];
    let day = Duration::from_secs(12 * 3600);
    for (began, state) in [
        ("2026-01-01T11:00:00Z", State::Error),
        ("2025-12-31T23:00:00Z", State::Failed),
    ] {
        let shoot = shoot(&json!({"status": {"retryCycleStartTime": began}}));
        let patch = status::failed(&shoot, Type::Reconcile, 30, &errors, day, Time(now()));
        assert_eq!(patch["lastOperation"]["state"], json!(state));
        assert_eq!(
            patch["lastErrors"][0]["codes"],
            json!(["ERR_CONFIGURATION_PROBLEM"])
        );
        assert_eq!(patch["lastErrors"][0]["taskID"], "Collecting facts");
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
    let errors = flow_errors(&error, &Time(now()));
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
        &json!({"spec": {"seedName": "nowhere"}, "status": {"seedName": "a", "constraints": [{
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
    // The rest of the status is unchanged (I8), and the second call writes no patch.
    assert_eq!(patch.as_object().unwrap().len(), 1);
    let mut told = waiting.clone();
    told.status.as_mut().unwrap().last_errors = serde_json::from_value(patch["lastErrors"].clone()).unwrap();
    assert!(status::move_cannot_begin(&told, &constraint(&told), &Time(now())).is_none());
    let mut ready = constraint(&waiting);
    ready.status = api::meta::ConditionStatus::True;
    assert!(status::move_cannot_begin(&waiting, &ready, &Time(now())).is_none());
}
