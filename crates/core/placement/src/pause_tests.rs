//! The operations that a pause holds back, and the operations that continue.

#![allow(clippy::unwrap_used)]

use api::gardencore::Shoot;
use rstest::rstest;
use serde_json::{Value, json};

use super::{Pause, begins_anew, is_stopped, pause};
use crate::{Operation, OwnerAction, wanted};

fn shoot(over: &Value) -> Shoot {
    let mut base = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": "demo", "namespace": "garden-dev", "uid": "u-1", "generation": 2},
        "spec": {"region": "r", "provider": {"type": "local"}, "kubernetes": {"version": "1.34.4"},
                 "cloudProfile": {"name": "local", "kind": "CloudProfile"}, "seedName": "a"},
        "status": {"seedName": "a", "observedGeneration": 2},
    });
    json_patch::merge(&mut base, over);
    serde_json::from_value(base).unwrap()
}

fn after(type_: &str, state: &str) -> Value {
    let last = json!({
        "type": type_, "state": state, "progress": 0, "description": "", "lastUpdateTime": "2026-01-01T12:00:00Z",
    });
    json!({"status": {"lastOperation": last}})
}

fn with(mut over: Value, more: &Value) -> Value {
    json_patch::merge(&mut over, more);
    over
}

/// Moving to seed `b`, and approved.
fn moving(over: Value) -> Value {
    let spec = json!({"region": "r", "provider": {"type": "local"}, "kubernetes": {"version": "1.34.4"}, "seedName": "b"});
    let approval = json!({"source": "a", "destination": "b", "generation": 2, "spec": spec});
    with(
        over,
        &json!({"spec": {"seedName": "b"}, "status": {"migration": approval}}),
    )
}

fn deleted(over: Value) -> Value {
    let annotations = json!({"confirmation.gardener.cloud/deletion": "true"});
    with(
        over,
        &json!({"metadata": {"deletionTimestamp": "2026-01-01T12:00:00Z", "annotations": annotations}}),
    )
}

#[rstest]
#[case::creation(json!({"status": {"seedName": null}}), Operation::Create, true)]
#[case::creation_under_way(after("Create", "Error"), Operation::Create, false)]
#[case::creation_given_up(after("Create", "Failed"), Operation::Create, true)]
#[case::next_reconciliation(after("Reconcile", "Succeeded"), Operation::Reconcile, true)]
#[case::first_after_a_move(after("Restore", "Succeeded"), Operation::Reconcile, true)]
#[case::given_up(after("Reconcile", "Failed"), Operation::Reconcile, true)]
#[case::under_way(after("Reconcile", "Processing"), Operation::Reconcile, false)]
#[case::tried_again(after("Reconcile", "Error"), Operation::Reconcile, false)]
#[case::edited_since(with(after("Reconcile", "Error"), &json!({"metadata": {"generation": 3}})), Operation::Reconcile, true)]
#[case::move_that_has_not_begun(moving(after("Reconcile", "Succeeded")), Operation::Migrate, true)]
#[case::move_that_waits(moving(after("Migrate", "Pending")), Operation::Migrate, true)]
#[case::move_that_has_begun(moving(after("Migrate", "Error")), Operation::Migrate, false)]
#[case::handed_over_or_taken_over(after("Migrate", "Succeeded"), Operation::Restore, false)]
#[case::restore_under_way(after("Restore", "Error"), Operation::Restore, false)]
#[case::called_off(after("Migrate", "Processing"), Operation::Restore, false)]
#[case::deletion(deleted(after("Reconcile", "Succeeded")), Operation::Delete, false)]
#[case::deletion_under_way(deleted(after("Delete", "Error")), Operation::Delete, false)]
fn a_pause_holds_back_only_what_has_not_begun(
    #[case] over: Value,
    #[case] operation: Operation,
    #[case] is_held: bool,
) {
    let shoot = shoot(&over);
    assert_eq!(wanted(&shoot), OwnerAction::Operation(operation));
    assert_eq!(begins_anew(&shoot, operation), is_held);
}

#[rstest]
#[case("true", true)]
#[case("1", true)]
#[case("T", true)]
#[case("false", false)]
#[case("", false)]
#[case("yes", false)]
fn the_annotations_are_truth_values_as_in_gardener(#[case] value: &str, #[case] is_on: bool) {
    let ignored = shoot(&json!({"metadata": {"annotations": {"shoot.gardener.cloud/ignore": value}}}));
    assert_eq!(pause(&ignored, false), is_on.then_some(Pause::ShootIgnored));
    let key = "shoot.gardener.cloud/emergency-stop-reconciliations";
    assert_eq!(is_stopped(&[(key.to_owned(), value.to_owned())].into()), is_on);
}

#[test]
fn a_stopped_seed_pauses_every_shoot_and_the_users_annotation_is_named_first() {
    let plain = shoot(&json!({}));
    assert_eq!(pause(&plain, true), Some(Pause::SeedStopped));
    let ignored = shoot(&json!({"metadata": {"annotations": {"shoot.gardener.cloud/ignore": "true"}}}));
    assert_eq!(pause(&ignored, true), Some(Pause::ShootIgnored));
    let sentence = Pause::SeedStopped.sentence("a");
    assert!(
        sentence.contains("Seed a has the annotation shoot.gardener.cloud/emergency-stop-reconciliations"),
        "{sentence}"
    );
}
