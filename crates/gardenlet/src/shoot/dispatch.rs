//! What the gardenlet of one seed does with a Shoot now: a pure function of the object and of the own seed's
//! name (flows.md 3.0). Who acts, and what is wanted of the owner, is `placement`'s to say; here is when.

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

/// What the gardenlet of one seed does with a Shoot now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// It acts elsewhere, or nowhere yet.
    NotResponsible,
    /// Nothing until this time has passed or the Shoot changes.
    Idle(Duration),
    /// It is `Failed`: nothing until a user changes it or asks for a retry.
    GivenUp,
    /// The flow of this operation.
    Run(Operation),
    /// Clean up what is left of the stay in this epoch.
    Leave(i64),
    /// It is being deleted and nobody confirmed that: it stays as it is, and is told what is awaited.
    Unconfirmed,
    /// A pause holds back the operation that would begin now.
    Paused(Pause),
}

/// Times by which [`decide`] goes.
#[derive(Clone, Copy, Debug)]
pub struct Periods {
    /// A Shoot that was reconciled well is reconciled again after this.
    pub sync: Duration,
}

/// A Shoot that waits for another writer is looked at again after this; the writer's change wakes it earlier.
const WAIT_FOR_OTHERS: Duration = Duration::from_secs(60);

/// What the gardenlet of `own_seed` does now.
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
    // Also of one that was given up: a zone that is sick may be why (RZ-01, RZ-02).
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

/// Whether the last operation is the one that is wanted now, so that its outcome says something about it.
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
