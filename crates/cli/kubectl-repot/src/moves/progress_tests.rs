//! The arrival of a shoot in each state of a move.

#![allow(clippy::unwrap_used)]

use super::*;

fn shoot(wanted: &str, status: &str) -> Shoot {
    serde_yaml_ng::from_str(&format!(
        "metadata: {{name: demo}}\nspec: {{region: r, provider: {{type: t}}, seedName: {wanted}}}\nstatus: {status}\n"
    ))
    .unwrap()
}

fn operation(last: &str) -> String {
    let (type_, state) = last.split_once(' ').unwrap();
    format!(
        "lastOperation: {{type: {type_}, state: {state}, progress: 40, description: Copying, lastUpdateTime: 2026-01-01T00:00:00Z}}"
    )
}

#[test]
fn a_shoot_has_arrived_when_the_control_plane_is_complete() {
    // `status.seedName` alone changes in the middle of a move.
    for status in [
        format!("{{seedName: b, {}}}", operation("Migrate Succeeded")),
        format!("{{seedName: b, {}}}", operation("Restore Processing")),
        format!(
            "{{seedName: a, settledSeedName: a, {}}}",
            operation("Reconcile Succeeded")
        ),
    ] {
        let step = arrival(Some(&shoot("b", &status)), "b").unwrap();
        assert!(matches!(step, Step::Waiting(_)), "{status}");
    }
    let there = format!(
        "{{seedName: b, settledSeedName: b, {}}}",
        operation("Restore Succeeded")
    );
    assert_eq!(arrival(Some(&shoot("b", &there)), "b"), Ok(Step::Done(())));
}

#[test]
fn a_wait_ends_when_the_shoot_cannot_arrive_any_more() {
    let moving = format!("{{seedName: a, {}}}", operation("Migrate Processing"));
    let redirected = arrival(Some(&shoot("c", &moving)), "b").unwrap_err();
    assert!(
        redirected.to_string().contains("concurrent request"),
        "{redirected}"
    );
    assert!(
        arrival(None, "b")
            .unwrap_err()
            .to_string()
            .contains("does not exist")
    );
    let failed = format!(
        "{{seedName: a, lastErrors: [{{description: the bucket refuses}}], {}}}",
        operation("Migrate Failed")
    );
    let failed = arrival(Some(&shoot("b", &failed)), "b").unwrap_err();
    assert!(
        failed.to_string().contains("the bucket refuses") && failed.to_string().contains("operation=retry"),
        "{failed}"
    );
}

/// Otherwise a repeated drain reports the failure of an earlier request.
#[test]
fn a_failed_operation_that_is_tried_again_ends_no_wait() {
    let failed = format!(
        "{{seedName: a, observedGeneration: 2, {}}}",
        operation("Migrate Failed")
    );
    let with = |metadata: &str| -> Shoot {
        let mut shoot = shoot("b", &failed);
        shoot.metadata = serde_yaml_ng::from_str(&format!("{{name: demo, {metadata}}}")).unwrap();
        shoot
    };
    for (metadata, ends) in [
        ("generation: 2", true),
        ("generation: 3", false),
        (
            "generation: 2, annotations: {gardener.cloud/operation: retry}",
            false,
        ),
        (
            "generation: 2, annotations: {gardener.cloud/operation: reconcile}",
            false,
        ),
        (
            "generation: 2, annotations: {gardener.cloud/operation: maintain}",
            true,
        ),
    ] {
        let step = arrival(Some(&with(metadata)), "b");
        assert_eq!(step.is_err(), ends, "{metadata}: {step:?}");
    }
}

#[test]
fn a_sentence_names_the_obstacle_or_the_step() {
    let constraint = "constraints: [{type: ReadyForMigration, status: 'False', reason: DestinationSeedFull, message: Seed b is full., \
                      lastTransitionTime: 2026-01-01T00:00:00Z, lastUpdateTime: 2026-01-01T00:00:00Z}]";
    let waits = format!("{{seedName: a, {constraint}}}");
    assert_eq!(
        describe(&shoot("b", &waits)),
        "demo: the move waits (DestinationSeedFull): Seed b is full."
    );
    let copies = format!(
        "{{seedName: b, {}, migration: {{source: a, destination: b, generation: 1, spec: {{}}, progress: {{seedName: b, step: Copying, \
         startTime: 2026-01-01T00:00:00Z, copiedBytes: 1, totalBytes: 2, awaited: the Job}}}}}}",
        operation("Restore Processing")
    );
    assert_eq!(
        describe(&shoot("b", &copies)),
        "demo: Restore Processing 40% on seed b: Copying; copied 1 of 2 bytes; waits for: the Job"
    );
}
