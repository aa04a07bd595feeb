//! The progress of a move, as a sentence, and the end of the move: pure decisions.

use api::{
    constants::condition::READY_FOR_MIGRATION,
    gardencore::{Shoot, ShootStatus},
    meta::{ConditionStatus, LastOperationState},
};
use kube::ResourceExt;
use placement::{Journey, journey};

use crate::{failure::Failure, follow::Step};

/// Whether the control plane of the shoot is complete in the seed.
///
/// # Errors
/// The shoot cannot arrive any more: the Shoot is deleted, is to move to a different seed, or the operation
/// has failed for good.
pub fn arrival(shoot: Option<&Shoot>, seed: &str) -> Result<Step<()>, Failure> {
    let Some(shoot) = shoot else {
        return Err(Failure::failed(format!(
            "the Shoot on the way to seed {seed} does not exist any more"
        )));
    };
    let name = shoot.name_any();
    if shoot.metadata.deletion_timestamp.is_some() {
        return Err(Failure::refused(format!(
            "shoot {name} is being deleted, and does not arrive on seed {seed}"
        )));
    }
    let wanted = shoot.spec.seed_name.as_deref().unwrap_or_default();
    if wanted != seed {
        return Err(Failure::refused(format!(
            "a concurrent request has set spec.seedName of shoot {name} to {wanted}, so that the shoot does not arrive on seed {seed}"
        )));
    }
    let status = shoot.status.clone().unwrap_or_default();
    let acts = status.seed_name.as_deref() == Some(seed);
    if acts && status.settled_seed_name.as_deref() == Some(seed) {
        return Ok(Step::Done(()));
    }
    let last = status.last_operation.as_ref();
    if journey(shoot) != Journey::Settled && last.is_some_and(|last| last.state == LastOperationState::Failed)
    {
        return Err(Failure::failed(format!(
            "the operation on shoot {name} has failed and is not tried again: {}; remove the cause, then annotate the Shoot with \
             gardener.cloud/operation=retry",
            errors(&status)
        )));
    }
    Ok(Step::Waiting(describe(shoot)))
}

/// The present state of a move as a sentence. Durations are left out, so that a new sentence is a new state.
#[must_use]
pub fn describe(shoot: &Shoot) -> String {
    let name = shoot.name_any();
    let Some(status) = &shoot.status else {
        return format!("{name}: the shoot is on no seed yet");
    };
    let acting = status.seed_name.as_deref().unwrap_or_default();
    if journey(shoot) == Journey::Settled {
        let constraint = status.constraint(READY_FOR_MIGRATION);
        return match constraint {
            Some(constraint) if constraint.status == ConditionStatus::True => {
                format!("{name}: the move is approved and begins on seed {acting}")
            }
            Some(constraint) => format!(
                "{name}: the move waits ({}): {}",
                constraint.reason, constraint.message
            ),
            None => format!("{name}: the garden checks the move"),
        };
    }
    let operation = status.last_operation.as_ref().map(|last| {
        format!(
            "{} {} {}% on seed {acting}: {}",
            last.type_, last.state, last.progress, last.description
        )
    });
    let progress = status
        .migration
        .as_ref()
        .and_then(|migration| migration.progress.as_ref());
    let copied = progress.and_then(|progress| {
        let (copied, total) = (progress.copied_bytes?, progress.total_bytes?);
        Some(format!("; copied {copied} of {total} bytes"))
    });
    let awaited = progress.and_then(|progress| progress.awaited.as_ref());
    let awaited = awaited.map(|awaited| format!("; waits for: {awaited}"));
    let errors = if status.last_errors.is_empty() {
        String::new()
    } else {
        format!("; last errors: {}", errors(status))
    };
    format!(
        "{name}: {}{}{}{errors}",
        operation.unwrap_or_default(),
        copied.unwrap_or_default(),
        awaited.unwrap_or_default()
    )
}

fn errors(status: &ShootStatus) -> String {
    let errors = status.last_errors.iter();
    let errors: Vec<&str> = errors.map(|error| error.description.as_str()).collect();
    errors.join("; ")
}

#[cfg(test)]
mod tests {
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
            failed.to_string().contains("the bucket refuses")
                && failed.to_string().contains("operation=retry"),
            "{failed}"
        );
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
}
