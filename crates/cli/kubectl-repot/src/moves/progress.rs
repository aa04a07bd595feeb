//! The progress of a move, as a sentence, and the end of the move: pure decisions.

use api::{
    constants::{OPERATION, condition::READY_FOR_MIGRATION, operation},
    gardencore::{Shoot, ShootStatus},
    meta::{ConditionStatus, LastOperationState},
};
use kube::ResourceExt;
use placement::{Journey, journey};

use crate::{failure::Failure, follow::Step, terminal::one_line};

/// Whether the control plane of the shoot is complete in the seed.
///
/// # Errors
/// The shoot cannot arrive any more: the Shoot is deleted, is to move to a different seed, or the operation
/// has failed for good, and no request for a further attempt is open.
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
    let has_failed = last.is_some_and(|last| last.state == LastOperationState::Failed);
    if has_failed && journey(shoot) != Journey::Settled && !is_tried_again(shoot) {
        return Err(Failure::failed(format!(
            "the operation on shoot {name} has failed and is not tried again: {}; remove the cause, then annotate the Shoot with \
             gardener.cloud/operation=retry",
            errors(&status)
        )));
    }
    Ok(Step::Waiting(describe(shoot)))
}

/// Whether the gardenlet has not answered a request for a further attempt. The state `Failed` is then of an
/// earlier attempt. As `dispatch` of the gardenlet decides.
fn is_tried_again(shoot: &Shoot) -> bool {
    let requested = shoot.annotations().get(OPERATION).map(String::as_str);
    let observed = shoot
        .status
        .as_ref()
        .and_then(|status| status.observed_generation);
    matches!(requested, Some(operation::RECONCILE | operation::RETRY))
        || observed != shoot.metadata.generation
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
    one_line(&errors.join("; ")).into_owned()
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
