//! The responsible seed, its operation and the status, for each state of an entry.

#![allow(clippy::unwrap_used)]

use api::{
    constants::TIMESTAMP,
    extensions::BackupEntrySpec as TheirSpec,
    gardencore::{BackupEntrySpec, BackupEntryStatus},
    meta::{ErrorCode, LastError},
};
use jiff::Timestamp;

use placement::Operation;

use super::*;
use LastOperationState::{Error as Failing, Processing, Succeeded};
use LastOperationType::{Create, Migrate, Reconcile, Restore};

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn last(type_: LastOperationType, state: LastOperationState, second: i64) -> LastOperation {
    LastOperation {
        description: "d".into(),
        last_update_time: at(second),
        progress: 0,
        state,
        type_,
    }
}

fn entry(spec: &str, status: Option<&str>, operation: Option<LastOperation>) -> BackupEntry {
    let spec = BackupEntrySpec {
        bucket_name: "b".into(),
        seed_name: Some(spec.into()),
        shoot_ref: None,
    };
    let mut entry = BackupEntry::new("e", spec);
    entry.metadata.generation = Some(3);
    if status.is_some() || operation.is_some() {
        entry.status = Some(BackupEntryStatus {
            seed_name: status.map(str::to_owned),
            last_operation: operation,
            observed_generation: Some(3),
            ..BackupEntryStatus::default()
        });
    }
    entry
}

fn theirs(second: i64) -> extensions::BackupEntry {
    let mut object = extensions::BackupEntry::new("e", TheirSpec::default());
    object.metadata.generation = Some(1);
    object.metadata.annotations = Some([(TIMESTAMP.to_owned(), at(second).0.to_string())].into());
    let status = object.default_status_mut();
    status.observed_generation = Some(1);
    status.last_operation = Some(last(Reconcile, Succeeded, second));
    object
}

#[test]
fn the_seed_of_the_status_acts_until_it_has_handed_over() {
    assert_eq!(responsible_seed(&entry("a", None, None)), Some("a"));
    assert_eq!(responsible_seed(&entry("b", Some("a"), None)), Some("a"));
    assert_eq!(responsible_seed(&entry("b", Some("b"), None)), Some("b"));
    assert_eq!(responsible_seed(&entry("", Some("a"), None)), None);
}

#[test]
fn an_entry_says_where_the_etcd_is_that_needs_it() {
    let of = |name: &str| {
        let mut entry = entry("a", None, None);
        entry.metadata.name = Some(name.to_owned());
        namespace_of(&entry)
    };
    assert_eq!(of("shoot--dev--web--u-1").as_deref(), Some("shoot--dev--web"));
    assert_eq!(of("source-shoot--dev--web--u-1"), None);
    assert_eq!((of("web"), of("--u-1")), (None, None));
}

#[test]
fn a_move_is_migrate_here_and_restore_there() {
    assert_eq!(operation(&entry("a", None, None)), Operation::Create);
    assert_eq!(
        operation(&entry("b", Some("a"), Some(last(Create, Succeeded, 0)))),
        Operation::Migrate
    );
    assert_eq!(
        operation(&entry("b", Some("b"), Some(last(Migrate, Succeeded, 0)))),
        Operation::Restore
    );
    assert_eq!(
        operation(&entry("b", Some("b"), Some(last(Restore, Failing, 0)))),
        Operation::Restore
    );
    assert_eq!(
        operation(&entry("b", Some("b"), Some(last(Restore, Succeeded, 0)))),
        Operation::Reconcile
    );
    let mut asked = entry("b", Some("b"), Some(last(Reconcile, Succeeded, 0)));
    asked.metadata.annotations = Some([(OPERATION.to_owned(), RESTORE.to_owned())].into());
    assert_eq!(operation(&asked), Operation::Restore);
}

#[test]
fn a_run_begins_when_something_changed_and_only_once() {
    let fresh = entry("a", None, None);
    assert!(must_begin(&fresh, Create));
    assert!(!must_begin(
        &entry("a", Some("a"), Some(last(Create, Processing, 0))),
        Create
    ));
    assert!(!must_begin(
        &entry("a", Some("a"), Some(last(Create, Succeeded, 0))),
        Reconcile
    ));
    assert!(must_begin(
        &entry("b", Some("a"), Some(last(Create, Succeeded, 0))),
        Migrate
    ));
    assert!(must_begin(
        &entry("b", Some("b"), Some(last(Migrate, Succeeded, 0))),
        Restore
    ));
    let mut changed = entry("a", Some("a"), Some(last(Create, Succeeded, 0)));
    changed.metadata.generation = Some(4);
    assert!(must_begin(&changed, Reconcile));
    let mut asked = entry("a", Some("a"), Some(last(Reconcile, Succeeded, 0)));
    asked.metadata.annotations = Some([(OPERATION.to_owned(), "reconcile".to_owned())].into());
    assert!(must_begin(&asked, Reconcile));
}

/// Otherwise a former seed fills the status, so that no write of this seed has room.
#[test]
fn the_begin_of_a_run_leaves_no_text_of_a_former_seed() {
    let body = begun(Restore, at(9));
    assert_eq!(body.get("lastError"), Some(&Value::Null));
    let description = body["lastOperation"]["description"].as_str();
    assert_eq!(description, Some("Restore of Backup Entry in progress."));
}

#[test]
fn the_provider_is_asked_once_a_run() {
    let spec = TheirSpec::default();
    let began = last(Reconcile, Processing, 100);
    assert!(why_deploy(Some(&began), None, (&spec, None), false).is_some());
    assert!(why_deploy(Some(&began), Some(&theirs(99)), (&spec, None), false).is_some());
    assert_eq!(
        why_deploy(Some(&began), Some(&theirs(100)), (&spec, None), false),
        None
    );
    assert!(why_deploy(Some(&began), Some(&theirs(100)), (&spec, None), true).is_some());
    let done = last(Reconcile, Succeeded, 200);
    assert_eq!(
        why_deploy(Some(&done), Some(&theirs(100)), (&spec, None), false),
        None
    );
    let other = TheirSpec {
        bucket_name: "c".into(),
        ..TheirSpec::default()
    };
    assert!(why_deploy(Some(&done), Some(&theirs(100)), (&other, None), false).is_some());
}

#[test]
fn the_time_of_a_run_stays_until_it_succeeds() {
    let running = entry("a", Some("a"), Some(last(Reconcile, Processing, 100)));
    let mut found = theirs(100);
    found.default_status_mut().last_error = Some(LastError {
        description: "no.".into(),
        task_id: None,
        codes: vec![],
        last_update_time: None,
    });
    let body = answer(&running, &found, Reconcile, "a", at(150)).unwrap();
    assert_eq!(body["lastOperation"]["state"], "Error");
    assert_eq!(body["lastOperation"]["lastUpdateTime"], at(100).0.to_string());
    let body = answer(&running, &theirs(120), Reconcile, "a", at(150)).unwrap();
    assert_eq!(body["lastOperation"]["lastUpdateTime"], at(150).0.to_string());
    assert_eq!(
        (&body["observedGeneration"], &body["seedName"]),
        (&json!(3), &json!("a"))
    );
    let done = entry("a", Some("a"), Some(last(Reconcile, Succeeded, 150)));
    assert_eq!(answer(&done, &theirs(120), Reconcile, "a", at(160)), None);
}

#[test]
fn an_error_of_ours_is_told_once_with_its_code() {
    let mut running = entry("a", Some("a"), Some(last(Reconcile, Processing, 100)));
    let error = Error::config(ErrorCode::ErrConfigurationProblem, "there is no bucket b");
    let body = failure(&running, &error, Reconcile, at(150)).unwrap();
    assert_eq!(body["lastError"]["codes"], json!(["ERR_CONFIGURATION_PROBLEM"]));
    running.status.as_mut().unwrap().last_error =
        Some(serde_json::from_value(body["lastError"].clone()).unwrap());
    assert_eq!(failure(&running, &error, Reconcile, at(160)), None);
    let waiting = Error::not_ready(std::time::Duration::ZERO, "not yet");
    assert_eq!(failure(&running, &waiting, Reconcile, at(160)), None);
}

/// Otherwise a deletion that has failed before the first request would end without a removal.
#[test]
fn an_error_of_a_deletion_is_recorded_without_an_operation() {
    let running = entry("a", Some("a"), Some(last(Reconcile, Succeeded, 100)));
    let error = Error::config(ErrorCode::ErrConfigurationProblem, "there is no bucket b");
    let body = deletion_failure(&running, &error, at(150)).unwrap();
    assert_eq!(body["lastError"]["description"], "there is no bucket b");
    assert_eq!(body.get("lastOperation"), None);
}

#[test]
fn the_epoch_of_an_entry_is_the_latest_recorded() {
    let annotated = |assigned: &str, begun: Option<&str>| {
        let mut entry = entry("b", None, None);
        let annotations = entry.annotations_mut();
        annotations.insert(BACKUP_ENTRY_ASSIGNED_IN_EPOCH.into(), assigned.into());
        if let Some(begun) = begun {
            annotations.insert(OWNERSHIP_EPOCH.into(), begun.into());
        }
        epoch_of(&entry)
    };
    assert_eq!(annotated("2", None).as_deref(), Some("2"));
    assert_eq!(annotated("2", Some("10")).as_deref(), Some("10"));
    assert_eq!(annotated("odd", None), None);
}

#[test]
fn handing_over_names_the_other_seed() {
    let body = handed_over(&entry("b", Some("a"), Some(last(Migrate, Processing, 0))), at(9));
    assert_eq!(
        (&body["seedName"], &body["lastError"]),
        (&json!("b"), &Value::Null)
    );
    assert_eq!(body["lastOperation"]["state"], "Succeeded");
}

#[test]
fn an_error_of_a_deletion_has_its_note_and_is_told_once() {
    let mut going = entry("a", Some("a"), Some(last(Reconcile, Succeeded, 100)));
    let mut found = theirs(100);
    assert_eq!(deletion_error(&going, &found, Some("note")), None);
    found.default_status_mut().last_error = Some(LastError {
        description: "refused.".into(),
        task_id: None,
        codes: vec![ErrorCode::ErrInfraUnauthorized],
        last_update_time: None,
    });
    let told = |going: &BackupEntry, note| deletion_error(going, &found, note);
    assert_eq!(
        told(&going, None).unwrap()["lastError"]["description"],
        "refused."
    );
    let error = told(&going, Some("note")).unwrap()["lastError"].clone();
    assert_eq!(error["description"], "refused. note");
    assert_eq!(error["codes"], json!(["ERR_INFRA_UNAUTHORIZED"]));
    going.status.as_mut().unwrap().last_error = Some(serde_json::from_value(error).unwrap());
    assert_eq!(told(&going, Some("note")), None);
    assert!(told(&going, None).is_some());
}

/// A recovered seed still has the objects that a planned move would have removed.
#[test]
fn what_another_seed_was_given_is_left_here_unless_it_is_handed_over_or_deleted() {
    let mut given = entry("b", Some("b"), None);
    assert!(is_taken_from(&given, "a"));
    assert!(!is_taken_from(&given, "b"));
    // The planned move: this seed is responsible until its status names the destination.
    assert!(!is_taken_from(&entry("b", Some("a"), None), "a"));
    assert!(is_taken_from(&entry("b", None, None), "a"));
    given.metadata.deletion_timestamp = Some(at(5));
    assert!(!is_taken_from(&given, "a"));
}

/// R17-21: a new entry waits for the owner record, and a renewed epoch stops no entry.
#[test]
fn an_assigned_entry_waits_for_the_flow_of_its_seed() {
    let annotated = |assigned: Option<&str>, begun: Option<&str>| {
        let mut entry = BackupEntry::new("e", api::gardencore::BackupEntrySpec::default());
        for (key, value) in [
            (BACKUP_ENTRY_ASSIGNED_IN_EPOCH, assigned),
            (OWNERSHIP_EPOCH, begun),
        ] {
            if let Some(value) = value {
                entry.annotations_mut().insert(key.into(), value.into());
            }
        }
        awaits_flow(&entry)
    };
    assert!(annotated(Some("1"), None));
    assert!(!annotated(Some("1"), Some("1")));
    assert!(annotated(Some("3"), Some("2")));
    assert!(!annotated(Some("3"), Some("4")));
    // An older version creates entries without the annotation.
    assert!(!annotated(None, None));
    assert!(!annotated(None, Some("2")));
}
