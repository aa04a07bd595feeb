//! Who acts on a Shoot, and what it does: a pure function of the object and of the own seed's name (flows.md 3.0).
//!
//! The seed that `status.seedName` names is responsible until it has handed over, also while `spec.seedName` names another
//! one. So at every moment exactly one gardenlet acts (I1), and the hand-over is the single write of `status.seedName` with
//! `lastOperation` Migrate Succeeded.

use std::time::Duration;

use api::{
    constants::{CONFIRMATION_FORCE_DELETION, OPERATION, operation},
    gardencore::Shoot,
    meta::{LastOperation, LastOperationState as State, LastOperationType as Type},
};
use jiff::Timestamp;
use kube::ResourceExt;

/// What the gardenlet of one seed does with a Shoot now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Another seed is responsible, or no seed yet.
    NotResponsible,
    /// Nothing until this time has passed or the Shoot changes.
    Idle(Duration),
    /// It is `Failed`: nothing until a user changes it or asks for a retry.
    GivenUp,
    /// Create, Reconcile or Restore.
    Reconcile(Type),
    /// Prepare for another seed.
    Migrate,
    /// Take down.
    Delete,
    /// Take down what can be, and let go of the rest.
    ForceDelete,
}

/// Times by which [`decide`] goes.
#[derive(Clone, Copy, Debug)]
pub struct Periods {
    /// A Shoot that was reconciled well is reconciled again after this.
    pub sync: Duration,
}

/// The seed whose gardenlet acts.
#[must_use]
pub fn responsible_seed(shoot: &Shoot) -> Option<&str> {
    let spec = non_empty(shoot.spec.seed_name.as_deref())?;
    let status = shoot
        .status
        .as_ref()
        .and_then(|status| non_empty(status.seed_name.as_deref()));
    Some(status.unwrap_or(spec))
}

/// Whether the Shoot is to move away from the seed that its status names (R7-45). A Shoot whose status names no seed was
/// never created and cannot move (R7-43).
#[must_use]
pub fn is_moving(shoot: &Shoot) -> bool {
    let spec = non_empty(shoot.spec.seed_name.as_deref());
    let status = shoot
        .status
        .as_ref()
        .and_then(|status| non_empty(status.seed_name.as_deref()));
    matches!((spec, status), (Some(spec), Some(status)) if spec != status)
}

/// What the gardenlet of `own_seed` does now.
#[must_use]
pub fn decide(shoot: &Shoot, own_seed: &str, periods: Periods, now: Timestamp) -> Step {
    if responsible_seed(shoot) != Some(own_seed) {
        return Step::NotResponsible;
    }
    let wanted = wanted_step(shoot);
    let last = shoot
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    let Some(last) = last else { return wanted };
    if asks_for_operation(shoot, last) || !is_about(last, wanted) || !is_observed(shoot) {
        return wanted;
    }
    match last.state {
        State::Failed => Step::GivenUp,
        State::Succeeded if matches!(wanted, Step::Reconcile(Type::Reconcile)) => {
            match remaining(last, periods.sync, now) {
                Some(rest) => Step::Idle(rest),
                None => wanted,
            }
        }
        _ => wanted,
    }
}

fn wanted_step(shoot: &Shoot) -> Step {
    if shoot.metadata.deletion_timestamp.is_some() {
        return if shoot
            .annotations()
            .get(CONFIRMATION_FORCE_DELETION)
            .is_some_and(|value| value == "true")
        {
            Step::ForceDelete
        } else {
            Step::Delete
        };
    }
    if is_moving(shoot) {
        Step::Migrate
    } else {
        Step::Reconcile(operation_type(shoot))
    }
}

/// Create, Reconcile or Restore: a Shoot that was handed over is restored until that has succeeded.
#[must_use]
pub fn operation_type(shoot: &Shoot) -> Type {
    let last = shoot
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    match last.map(|last| (last.type_, last.state)) {
        None => Type::Create,
        Some((Type::Create, state)) if state != State::Succeeded => Type::Create,
        Some((Type::Migrate, State::Succeeded | State::Aborted)) => Type::Restore,
        Some((Type::Restore, state)) if state != State::Succeeded => Type::Restore,
        Some(_) => Type::Reconcile,
    }
}

/// `reconcile` always counts, `retry` only on a Shoot that was given up.
fn asks_for_operation(shoot: &Shoot, last: &LastOperation) -> bool {
    match shoot.annotations().get(OPERATION).map(String::as_str) {
        Some(operation::RECONCILE) => true,
        Some(operation::RETRY) => last.state == State::Failed,
        _ => false,
    }
}

/// Whether the last operation is the one that is wanted now, so that its outcome says something about it.
fn is_about(last: &LastOperation, wanted: Step) -> bool {
    match wanted {
        Step::Reconcile(Type::Reconcile) => !matches!(last.type_, Type::Migrate | Type::Delete),
        Step::Reconcile(type_) => last.type_ == type_,
        Step::Migrate => last.type_ == Type::Migrate,
        // Whether a deletion was forced is not recorded; forcing a deletion that was given up goes ahead.
        Step::Delete => last.type_ == Type::Delete,
        _ => false,
    }
}

fn is_observed(shoot: &Shoot) -> bool {
    shoot
        .status
        .as_ref()
        .and_then(|status| status.observed_generation)
        == shoot.metadata.generation
}

/// What is left of `period` since the operation ended; none if it is over, or if the time lies in the future of this
/// machine's clock by more than the period.
fn remaining(last: &LastOperation, period: Duration, now: Timestamp) -> Option<Duration> {
    let elapsed = now.duration_since(last.last_update_time.0);
    let rest = jiff::SignedDuration::try_from(period)
        .ok()?
        .checked_sub(elapsed)?;
    Duration::try_from(rest)
        .ok()
        .filter(|rest| !rest.is_zero() && *rest <= period * 2)
}

fn non_empty(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}
