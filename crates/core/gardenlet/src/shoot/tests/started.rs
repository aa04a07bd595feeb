//! The first write of an operation: the fields that change, and the fields that stay.

use super::*;

#[test]
fn the_first_write_records_the_seed_before_anything_is_made_there() {
    let patch = status::started(
        &shoot(&json!({})),
        "dev",
        &writer(),
        Operation::Create,
        &Time(now()),
    );
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
fn a_retry_keeps_the_errors_and_the_start_of_the_cycle() {
    let mut again = recorded("a", "Reconcile", "Error");
    again["status"]["retryCycleStartTime"] = json!(NOW);
    let again = shoot(&again);
    let patch = status::started(&again, "dev", &writer(), Operation::Reconcile, &Time(now()));
    assert!(
        patch.get("lastErrors").is_none() && patch.get("retryCycleStartTime").is_none(),
        "{patch}"
    );
}

/// R17-61: the loss is reported once and without a retry. The next epoch starts with the full retry duration.
#[test]
fn what_is_lost_is_told_once_and_begins_anew_in_the_next_epoch() {
    let mut over = recorded("a", "Reconcile", "Processing");
    over["status"]["retryCycleStartTime"] = json!("2025-12-01T00:00:00Z");
    over["status"]["lastOperation"]["progress"] = json!(40);
    let patch = status::lost(&shoot(&over), Type::Reconcile, "it is lost", Time(now())).unwrap();
    let last = &patch["lastOperation"];
    assert_eq!((&last["state"], &last["progress"]), (&json!("Error"), &json!(40)));
    assert!(
        !last["description"].as_str().unwrap().contains("retried"),
        "{patch}"
    );
    json_patch::merge(&mut over, &json!({"status": patch}));
    let told = shoot(&over);
    assert_eq!(
        status::lost(&told, Type::Reconcile, "it is lost", Time(now())),
        None
    );
    assert!(status::lost(&told, Type::Reconcile, "in another epoch", Time(now())).is_some());
    let anew = status::started(&told, "dev", &writer(), Operation::Reconcile, &Time(now()));
    assert_eq!(anew["retryCycleStartTime"], NOW);
    assert!(
        anew["lastErrors"].is_null() && anew.get("lastErrors").is_some(),
        "{anew}"
    );
}
