//! The share of a shoot in each state of a move.

#![allow(clippy::unwrap_used)]

use super::*;

fn shoot(wanted: &str, acting: &str, last: &str, more: &str) -> Shoot {
    let (type_, state) = last.split_once(' ').unwrap();
    serde_yaml_ng::from_str(&format!(
        "metadata: {{name: demo}}\nspec: {{region: r, provider: {{type: t}}, seedName: {wanted}}}\n\
         status: {{seedName: {acting}, lastOperation: {{type: {type_}, state: {state}, progress: 1, description: d, \
         lastUpdateTime: 2026-01-01T00:00:00Z}}{more}}}\n"
    ))
    .unwrap()
}

const APPROVED: &str = ", migration: {source: a, destination: b, generation: 1, spec: {}}";

fn not_ready(reason: &str) -> String {
    format!(
        ", constraints: [{{type: ReadyForMigration, status: 'False', reason: {reason}, message: why, \
         lastTransitionTime: 2026-01-01T00:00:00Z, lastUpdateTime: 2026-01-01T00:00:00Z}}]"
    )
}

#[test]
fn the_state_of_a_drain_follows_from_the_shoots() {
    let moving = || Some(Share::Moving("b".to_owned()));
    let from_c = APPROVED.replace("source: a", "source: c");
    for (wanted, acting, last, more, share) in [
        ("a", "a", "Reconcile Succeeded", "", Some(Share::ToMove)),
        // After an interruption: requested, leaving, handed over, restored.
        ("b", "a", "Reconcile Succeeded", "", moving()),
        ("b", "a", "Migrate Processing", APPROVED, moving()),
        ("b", "b", "Migrate Succeeded", APPROVED, moving()),
        ("b", "b", "Restore Processing", APPROVED, moving()),
        ("b", "b", "Restore Succeeded", "", None),
        // A shoot of the destination that a different seed hands over.
        ("b", "b", "Restore Processing", from_c.as_str(), None),
    ] {
        let shoot = shoot(wanted, acting, last, more);
        assert_eq!(classify(&shoot, "a"), share, "{wanted} {acting} {last}");
    }
}

#[test]
fn a_shoot_that_cannot_move_now_is_left_out() {
    let reason = |shoot: &Shoot| match classify(shoot, "a") {
        Some(Share::LeftOut(why)) => why,
        share => format!("{share:?}"),
    };
    let mut deleted = shoot("a", "a", "Reconcile Succeeded", "");
    deleted.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    deleted.metadata.finalizers = Some(vec!["gardener".to_owned(), "example.org/own".to_owned()]);
    assert!(reason(&deleted).contains("being deleted"));
    // The gardenlet has deleted the control plane, and a user keeps the Shoot.
    deleted.metadata.finalizers = Some(vec!["example.org/own".to_owned()]);
    assert_eq!(classify(&deleted, "a"), None);
    let new = reason(&shoot("a", "a", "Create Processing", ""));
    assert!(new.contains("creation"), "{new}");
    let cancelled = reason(&shoot("a", "a", "Migrate Processing", ""));
    assert!(cancelled.contains("takes the shoot back"), "{cancelled}");
}

#[test]
fn a_lasting_obstacle_ends_the_wait_and_a_queue_does_not() {
    let full = shoot("b", "a", "Reconcile Succeeded", &not_ready("DestinationSeedFull"));
    let end = judge_progress(Some(&full), "b").unwrap();
    assert_eq!(
        end,
        Step::Done(MoveEnd::Obstacle("DestinationSeedFull: why".to_owned()))
    );
    let queued = shoot("b", "a", "Reconcile Succeeded", &not_ready(DESTINATION_SEED_BUSY));
    assert!(matches!(judge_progress(Some(&queued), "b"), Ok(Step::Waiting(_))));
    // The constraint judges a new destination during a move that has begun.
    let leaving = shoot(
        "b",
        "a",
        "Migrate Processing",
        &not_ready("DestinationSeedNotReady"),
    );
    assert!(matches!(
        judge_progress(Some(&leaving), "b"),
        Ok(Step::Waiting(_))
    ));
    assert_eq!(judge_progress(None, "b"), Ok(Step::Done(MoveEnd::Deleted)));
    let there = shoot("b", "b", "Restore Succeeded", ", settledSeedName: b");
    assert_eq!(
        judge_progress(Some(&there), "b"),
        Ok(Step::Done(MoveEnd::Arrived))
    );
}

#[test]
fn a_request_that_was_never_approved_has_only_waited_for_a_slot() {
    let state = |more: &str| shoot("b", "a", "Reconcile Succeeded", more);
    assert!(!waits_for_slot(&state("")), "the garden has not answered");
    let queued = state(&not_ready(DESTINATION_SEED_BUSY));
    assert!(waits_for_slot(&queued));
    assert!(!waits_for_slot(&state(&not_ready("DestinationSeedNotReady"))));
    // The constraint judges a new destination during a move that has begun.
    let leaving = shoot("b", "a", "Migrate Processing", &not_ready(DESTINATION_SEED_BUSY));
    assert!(!waits_for_slot(&leaving));
}

/// Otherwise the wait for a slot takes the time of the move, and a drain of large shoots fails by the queue.
#[test]
fn the_bound_of_a_move_begins_with_the_approval() {
    let state = |more: &str| shoot("b", "a", "Reconcile Succeeded", more);
    let approved_before = APPROVED.replace("destination: b", "destination: a");
    for more in [
        "",
        &not_ready(DESTINATION_SEED_BUSY),
        // The approval of the move that the shoot came by.
        &approved_before,
    ] {
        let waits = judge_begin(Some(&state(more)), "b");
        assert!(matches!(waits, Ok(Step::Waiting(_))));
    }
    let leaving = shoot("b", "a", "Migrate Processing", "");
    for begun in [state(APPROVED), leaving] {
        assert_eq!(judge_begin(Some(&begun), "b"), Ok(Step::Done(None)));
    }
    let full = state(&not_ready("DestinationSeedFull"));
    for (shoot, end) in [
        (
            Some(&full),
            MoveEnd::Obstacle("DestinationSeedFull: why".to_owned()),
        ),
        (None, MoveEnd::Deleted),
    ] {
        assert_eq!(judge_begin(shoot, "b"), Ok(Step::Done(Some(end))));
    }
}

#[test]
fn only_a_request_that_has_not_begun_is_taken_back() {
    // Without an approval, and with the approval of the move that the shoot came by.
    for more in ["", &APPROVED.replace("destination: b", "destination: a")] {
        let requested = shoot("b", "a", "Reconcile Succeeded", more);
        assert_eq!(
            decide_withdrawal(&requested, "a", "b"),
            Edit::Patch(json!({"spec": {"seedName": "a"}}))
        );
    }
    for (wanted, acting, last, more) in [
        ("b", "a", "Reconcile Succeeded", APPROVED),
        ("b", "a", "Migrate Processing", ""),
        ("b", "b", "Migrate Succeeded", ""),
        ("c", "a", "Reconcile Succeeded", ""),
    ] {
        let kept = shoot(wanted, acting, last, more);
        let edit = decide_withdrawal(&kept, "a", "b");
        assert!(matches!(edit, Edit::Unchanged(_)), "{edit:?}");
    }
}
