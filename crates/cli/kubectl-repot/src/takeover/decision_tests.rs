//! The request of a takeover, and the verdict of the garden.

#![allow(clippy::unwrap_used)]

use super::*;

fn shoot(wanted: &str, annotations: &str, status: &str) -> Shoot {
    serde_yaml_ng::from_str(&format!(
        "metadata: {{name: demo, annotations: {annotations}}}\nspec: {{region: r, provider: {{type: t}}, seedName: {wanted}}}\n\
         status: {status}\n"
    ))
    .unwrap()
}

fn report(source_is_off: bool) -> TakeoverReport {
    TakeoverReport {
        namespace: "garden-dev".to_owned(),
        shoot: "demo".to_owned(),
        from: "a".to_owned(),
        to: "b".to_owned(),
        epoch: 1,
        source: String::new(),
        loss: Vec::new(),
        fence_holds: true,
        fence_seconds: 24,
        unfenced_processes: Vec::new(),
        obstacles: Vec::new(),
        source_is_off,
    }
}

#[test]
fn a_request_names_destination_and_annotation_in_one_write() {
    for (is_off, value) in [(false, "true"), (true, "source-is-off")] {
        let patch = ask(&shoot("a", "{}", "{seedName: a}"), &report(is_off)).unwrap();
        assert_eq!(
            patch,
            Edit::Patch(json!({
                "metadata": {"annotations": {SHOOT_FORCE_RESTORE: value}}, "spec": {"seedName": "b"},
            }))
        );
    }
}

#[test]
fn an_approval_counts_only_for_the_state_that_was_shown() {
    for status in ["{seedName: c}", "{seedName: a, ownership: {epoch: 2}}"] {
        let why = ask(&shoot("b", "{}", status), &report(false)).unwrap_err();
        assert!(why.to_string().contains("has no effect"), "{why}");
    }
    let open = shoot(
        "c",
        "{shoot.gardener.cloud/force-restore: 'true'}",
        "{seedName: a}",
    );
    let why = ask(&open, &report(false)).unwrap_err();
    assert!(why.to_string().contains("is open"), "{why}");
}

#[test]
fn the_verdict_of_the_garden_is_read_from_the_shoot() {
    let approval = "{uid: u, from: a, to: b, epoch: 1, acceptedLoss: SinceLastSnapshot, expiry: 2026-01-01T00:00:00Z, \
                    by: Operator, reason: r}";
    let approved = format!("{{seedName: a, ownership: {{epoch: 1, approval: {approval}}}}}");
    let read = |shoot: &Shoot| verdict(Some(shoot), &report(false)).unwrap();
    let asked = shoot(
        "b",
        "{shoot.gardener.cloud/force-restore: 'true'}",
        "{seedName: a}",
    );
    assert!(matches!(read(&asked), Step::Waiting(_)));
    assert!(matches!(read(&shoot("b", "{}", &approved)), Step::Waiting(_)));
    assert_eq!(
        read(&shoot("b", "{}", "{seedName: a}")),
        Step::Done(Verdict::Refused)
    );
    assert_eq!(
        read(&shoot("b", "{}", "{seedName: b}")),
        Step::Done(Verdict::Granted)
    );
    assert!(verdict(Some(&shoot("c", "{}", "{seedName: c}")), &report(false)).is_err());
}

/// Otherwise the command waits for the end of a move that a dead seed never begins.
#[test]
fn a_planned_move_answers_no_request_with_a_source_that_is_off() {
    let planned = shoot(
        "b",
        "{}",
        "{seedName: a, migration: {source: a, destination: b, generation: 1, spec: {}}}",
    );
    for (is_off, answer) in [(false, Verdict::PlannedMove), (true, Verdict::Refused)] {
        assert_eq!(
            verdict(Some(&planned), &report(is_off)),
            Ok(Step::Done(answer)),
            "{is_off}"
        );
    }
}
