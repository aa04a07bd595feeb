//! A move for each report of the source.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;

fn shoot(constraints: &[(&str, &str, &str)], more: &Value) -> Shoot {
    let time = "2026-01-01T00:00:00Z";
    let constraints: Vec<Value> = constraints
        .iter()
        .map(|(type_, status, reason)| {
            json!({"type": type_, "status": status, "reason": reason, "message": "It is so",
                "lastTransitionTime": time, "lastUpdateTime": time})
        })
        .collect();
    let mut status = json!({"seedName": "a", "constraints": constraints, "lastOperation": {"type": "Reconcile",
        "state": "Succeeded", "progress": 100, "description": "", "lastUpdateTime": time}});
    for (key, value) in more.as_object().into_iter().flatten() {
        status[key] = value.clone();
    }
    serde_json::from_value(
        json!({"metadata": {"name": "web"}, "status": status, "spec": {"seedName": "b",
        "region": "r", "provider": {"type": "local"}, "kubernetes": {}}}),
    )
    .unwrap()
}

fn judged(shoot: &Shoot) -> Verdict {
    let ready = Verdict {
        ready: true,
        reason: "DestinationSeedReady",
        message: String::new(),
    };
    with_reports(shoot, ready)
}

#[test]
fn what_would_stop_a_move_half_way_refuses_it() {
    for (type_, reported, reason) in [
        (SHOOT_STATE_COMPLETE, "StateLeftOut", "SourceStateLeftOut"),
        (
            SHOOT_STATE_UP_TO_DATE,
            "ShootStateNotSynced",
            "SourceStateNotUpToDate",
        ),
        (HIBERNATION_POSSIBLE, WEBHOOKS_ON_LEASES, WEBHOOKS_ON_LEASES),
    ] {
        let verdict = judged(&shoot(&[(type_, "False", reported)], &json!({})));
        assert_eq!((verdict.ready, verdict.reason), (false, reason));
        let message = format!("Seed a reports {type_}=False: It is so. The move begins");
        assert!(verdict.message.starts_with(&message), "{}", verdict.message);
        assert!(!verdict.codes().is_empty());
        for status in ["True", "Progressing", "Unknown"] {
            assert!(judged(&shoot(&[(type_, status, reported)], &json!({}))).ready);
        }
    }
}

#[test]
fn a_webhook_stops_no_shoot_that_sleeps() {
    let webhook = [(HIBERNATION_POSSIBLE, "False", WEBHOOKS_ON_LEASES)];
    let verdict = judged(&shoot(&webhook, &json!({"hibernated": true})));
    assert!(verdict.ready && !verdict.message.contains("It is so"));
}

#[test]
fn force_overrides_a_webhook_but_no_state_that_was_left_out() {
    let webhook = (HIBERNATION_POSSIBLE, "False", WEBHOOKS_ON_LEASES);
    let held = judged(&shoot(&[webhook], &json!({})));
    assert!(held.message.contains("force-restore=true"), "{}", held.message);
    let force = |mut shoot: Shoot| {
        let asked = json!({"shoot.gardener.cloud/force-restore": "true"});
        shoot.metadata.annotations = serde_json::from_value(asked).unwrap();
        shoot
    };
    let verdict = judged(&force(shoot(&[webhook], &json!({}))));
    assert!(
        verdict.ready && verdict.message.contains("It is so."),
        "{verdict:?}"
    );
    let left_out = (SHOOT_STATE_COMPLETE, "False", "StateLeftOut");
    let verdict = judged(&force(shoot(&[left_out, webhook], &json!({}))));
    assert_eq!(verdict.reason, "SourceStateLeftOut");
    assert!(!verdict.message.contains("force-restore"), "{}", verdict.message);
}

#[test]
fn a_webhook_that_only_delays_the_start_is_a_warning() {
    let webhook = [(HIBERNATION_POSSIBLE, "False", "ProblematicWebhooks")];
    let verdict = judged(&shoot(&webhook, &json!({})));
    assert!(
        verdict.ready && verdict.message.ends_with("It is so."),
        "{}",
        verdict.message
    );
}

#[test]
fn a_move_that_has_begun_is_judged_no_more() {
    let left_out = [(SHOOT_STATE_COMPLETE, "False", "StateLeftOut")];
    let migrating = json!({
        "lastOperation": {"type": "Migrate", "state": "Processing", "progress": 1, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"},
        "migration": {"source": "a", "destination": "b", "generation": 1, "spec": {}},
    });
    assert!(judged(&shoot(&left_out, &migrating)).ready);
}

#[test]
fn an_obstacle_of_the_destination_is_reported_first() {
    let no = Verdict {
        ready: false,
        reason: "DestinationSeedNotReady",
        message: "m".into(),
    };
    let left_out = [(SHOOT_STATE_COMPLETE, "False", "StateLeftOut")];
    assert_eq!(with_reports(&shoot(&left_out, &json!({})), no.clone()), no);
}
