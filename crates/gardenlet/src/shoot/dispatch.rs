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
use placement::{Operation, OwnerAction, Pause, Role, isolation, pause::begins_anew, role, wanted};

use super::zone_recheck;

/// The next action of a gardenlet for a Shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
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

/// Decides the next action of the gardenlet of `own_seed`.
#[must_use]
pub fn decide(shoot: &Shoot, own_seed: &str, periods: Periods, now: Timestamp) -> Duty {
    match role(shoot, own_seed) {
        Role::Owner => {}
        Role::Former { epoch } => return Duty::Leave(epoch),
        // A seed that is only wanted has nothing to prepare yet.
        Role::Incoming | Role::Nobody => return Duty::NotResponsible,
    }
    let operation = match wanted(shoot) {
        OwnerAction::Operation(operation) => operation,
        OwnerAction::PassedOn => return Duty::Idle(WAIT_FOR_OTHERS),
        OwnerAction::Confirmation => return Duty::Unconfirmed,
    };
    let duty = Duty::Run(operation);
    let last = shoot
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    let Some(last) = last else { return duty };
    if asks_for_operation(shoot, last) || !is_about(last, operation) || !is_observed(shoot) {
        return duty;
    }
    // Also for a Shoot in state `Failed`: a failed zone may be the cause (RZ-01, RZ-02).
    if operation == Operation::Reconcile && isolation::is_due(shoot) {
        return duty;
    }
    match last.state {
        State::Failed => Duty::GivenUp,
        State::Succeeded if operation == Operation::Reconcile => {
            let recheck = zone_recheck::period(shoot, now).unwrap_or(periods.sync);
            remaining(last, periods.sync.min(recheck), now).map_or(duty, Duty::Idle)
        }
        _ => duty,
    }
}

/// The duty during a pause, if there is one.
#[must_use]
pub fn apply_pause(pause: Option<Pause>, shoot: &Shoot, duty: Duty) -> Duty {
    match (pause, duty) {
        (Some(held_by), Duty::Run(operation)) if is_held(pause, shoot, operation) => Duty::Paused(held_by),
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

/// `reconcile` always counts, `retry` only on a Shoot that was given up.
fn asks_for_operation(shoot: &Shoot, last: &LastOperation) -> bool {
    match shoot.annotations().get(OPERATION).map(String::as_str) {
        Some(operation::RECONCILE) => true,
        Some(operation::RETRY) => last.state == State::Failed,
        _ => false,
    }
}

/// Whether the last operation is of the type that the Shoot needs now, so that its state decides.
fn is_about(last: &LastOperation, wanted: Operation) -> bool {
    match wanted {
        Operation::Reconcile => !matches!(last.type_, Type::Migrate | Type::Delete),
        // Whether a deletion was forced is not recorded; forcing a deletion that was given up goes ahead.
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

/// What is left of `period` since the operation ended; none if it is over, or if the time lies in the future
/// of this machine's clock by more than the period.
fn remaining(last: &LastOperation, period: Duration, now: Timestamp) -> Option<Duration> {
    let elapsed = now.duration_since(last.last_update_time.0);
    let rest = jiff::SignedDuration::try_from(period)
        .ok()?
        .checked_sub(elapsed)?;
    Duration::try_from(rest)
        .ok()
        .filter(|rest| !rest.is_zero() && *rest <= period * 2)
}
