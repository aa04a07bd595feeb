//! The next action of a gardenlet for a Shoot, as a pure function of the Shoot and of the seed's name. The
//! crate `placement` decides which seed acts and which operation the Shoot needs. This module decides the
//! time.

use std::time::Duration;

use api::{
    constants::{OPERATION, operation},
    gardencore::Shoot,
    meta::{LastOperation, LastOperationState as State, LastOperationType as Type},
};
use jiff::Timestamp;
use kube::ResourceExt;
use placement::{Operation, OwnerAction, Pause, Role, pause::begins_anew, role, wanted};

use super::operation_hooks::HookSchedule;

/// The next action of a gardenlet for a Shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShootAction {
    /// The Shoot belongs to a different seed, or to no seed yet.
    NotResponsible,
    /// Nothing until this time has passed or the Shoot changes.
    Idle(Duration),
    /// The Shoot is `Failed`: nothing until a user changes the Shoot or requests a retry.
    GivenUp,
    /// The flow of this operation.
    Run(Operation),
    /// Clean up the seed after the residency of the Shoot in this epoch.
    Leave(i64),
    /// The Shoot is being deleted, and no user has confirmed the deletion. The control plane stays, and the
    /// Shoot reports the missing confirmation.
    Unconfirmed,
    /// A pause holds back the operation that would begin now.
    Paused(Pause),
}

/// The intervals of [`decide`].
#[derive(Clone, Copy, Debug)]
pub struct Periods {
    /// A Shoot is reconciled again after this time since the last success.
    pub sync: Duration,
}

/// Requeue interval for a Shoot that waits for a write by a different controller. The write wakes the
/// gardenlet earlier.
const WAIT_FOR_OTHERS: Duration = Duration::from_secs(60);

/// Decides the next action of the gardenlet of `own_seed`. `schedule`: when the hooks need a
/// reconciliation.
#[must_use]
pub fn decide(
    shoot: &Shoot,
    own_seed: &str,
    periods: Periods,
    schedule: HookSchedule,
    now: Timestamp,
) -> ShootAction {
    match role(shoot, own_seed) {
        Role::Owner => {}
        Role::Former { epoch } => return ShootAction::Leave(epoch),
        // A seed prepares only under a grant, beside this controller (`preparing`).
        Role::Incoming | Role::Nobody => return ShootAction::NotResponsible,
    }
    let operation = match wanted(shoot) {
        OwnerAction::Operation(operation) => operation,
        OwnerAction::PassedOn => return ShootAction::Idle(WAIT_FOR_OTHERS),
        OwnerAction::Confirmation => return ShootAction::Unconfirmed,
    };
    let duty = ShootAction::Run(operation);
    let last = shoot
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    let Some(last) = last else { return duty };
    if asks_for_operation(shoot, last) || !is_about(last, operation) || !is_observed(shoot) {
        return duty;
    }
    if operation == Operation::Reconcile && schedule.is_due {
        return duty;
    }
    match last.state {
        State::Failed => ShootAction::GivenUp,
        State::Succeeded if operation == Operation::Reconcile => {
            let period = schedule.period.unwrap_or(periods.sync);
            remaining(last, periods.sync.min(period), now).map_or(duty, ShootAction::Idle)
        }
        _ => duty,
    }
}

/// The duty during a pause, if there is one.
#[must_use]
pub fn apply_pause(pause: Option<Pause>, shoot: &Shoot, duty: ShootAction) -> ShootAction {
    match (pause, duty) {
        (Some(held_by), ShootAction::Run(operation)) if is_held(pause, shoot, operation) => {
            ShootAction::Paused(held_by)
        }
        (_, duty) => duty,
    }
}

/// Whether a pause holds back this operation. garden-controller-manager withdraws the approval of a move from
/// a Shoot that is ignored, unless the approval was given by force.
#[must_use]
pub fn is_held(pause: Option<Pause>, shoot: &Shoot, operation: Operation) -> bool {
    pause.is_some_and(|pause| pause != Pause::ShootIgnored || operation != Operation::Migrate)
        && begins_anew(shoot, operation)
}

/// `reconcile` always counts, `retry` only for a Shoot in state `Failed`.
fn asks_for_operation(shoot: &Shoot, last: &LastOperation) -> bool {
    match shoot.annotations().get(OPERATION).map(String::as_str) {
        Some(operation::RECONCILE) => true,
        Some(operation::RETRY) => last.state == State::Failed,
        _ => false,
    }
}

/// Whether the state of the last operation counts for the operation that the Shoot needs now.
fn is_about(last: &LastOperation, wanted: Operation) -> bool {
    match wanted {
        Operation::Reconcile => !matches!(last.type_, Type::Migrate | Type::Delete),
        // The last operation does not record whether a deletion was forced. So a forced deletion also starts
        // after a deletion in state `Failed`.
        Operation::ForceDelete => false,
        other => last.type_ == other.type_(),
    }
}

fn is_observed(shoot: &Shoot) -> bool {
    shoot
        .status
        .as_ref()
        .and_then(|status| status.observed_generation)
        == shoot.metadata.generation
}

/// The rest of `period` since the end of the operation. `None` if the period has passed, or if the end is in
/// the future of this machine's clock by more than the period.
fn remaining(last: &LastOperation, period: Duration, now: Timestamp) -> Option<Duration> {
    let elapsed = now.duration_since(last.last_update_time.0);
    let rest = jiff::SignedDuration::try_from(period)
        .ok()?
        .checked_sub(elapsed)?;
    Duration::try_from(rest)
        .ok()
        .filter(|rest| !rest.is_zero() && *rest <= period * 2)
}
