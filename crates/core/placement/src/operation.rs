//! The operations on a Shoot.

use api::{
    constants::{CONFIRMATION_DELETION, CONFIRMATION_FORCE_DELETION},
    gardencore::{Shoot, shoot::OwnershipPhase},
    meta::{LastOperationState as State, LastOperationType as Type},
};
use kube::ResourceExt;

use crate::{
    hosting_seed,
    journey::{Journey, has_earlier_epoch, is_move_wanted, journey, may_travel},
    ownership_status, status,
};

/// The operation of the owner on a Shoot, and of the providers on each extension object of the Shoot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The shoot is created for the first time.
    Create,
    /// The shoot is reconciled with the specification.
    Reconcile,
    /// The shoot is restored: after a hand-over from another seed, or after a cancelled move.
    Restore,
    /// The shoot is prepared for the hand-over to another seed.
    Migrate,
    /// The shoot is deleted.
    Delete,
    /// The shoot is deleted as far as possible, and the remaining objects are released.
    ForceDelete,
}

impl Operation {
    /// The value of `status.lastOperation.type`.
    #[must_use]
    pub fn type_(self) -> Type {
        match self {
            Self::Create => Type::Create,
            Self::Reconcile => Type::Reconcile,
            Self::Restore => Type::Restore,
            Self::Migrate => Type::Migrate,
            Self::Delete | Self::ForceDelete => Type::Delete,
        }
    }

    /// Whether the operation deletes the shoot.
    #[must_use]
    pub fn deletes(self) -> bool {
        matches!(self, Self::Delete | Self::ForceDelete)
    }

    /// Whether the operation may change external resources. A shoot that is handed over keeps its external
    /// resources (I9).
    #[must_use]
    pub fn acts_outside(self) -> bool {
        self != Self::Migrate
    }

    /// Whether the control plane runs after the operation.
    #[must_use]
    pub fn deploys(self) -> bool {
        matches!(self, Self::Create | Self::Reconcile | Self::Restore)
    }
}

/// The wanted action of a Shoot's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnerAction {
    /// This operation.
    Operation(Operation),
    /// No operation: garden-controller-manager first has to hand the Shoot over to the next seed.
    PassedOn,
    /// No operation until the user has confirmed the deletion. Checked here too, because the policies that
    /// demand a confirmation can be uninstalled.
    Confirmation,
}

/// The action that is wanted of the owner now.
///
/// A Shoot that is deleted in the middle of a move is first restored, and then deleted. Released extension
/// objects delete no external resources, so a deletion in the middle of a move would leave all external
/// resources behind. Without a confirmation of the deletion, an operation under way is finished, so that the
/// shoot serves meanwhile.
#[must_use]
pub fn wanted(shoot: &Shoot) -> OwnerAction {
    let asked = shoot.metadata.deletion_timestamp.is_some();
    let deleting = asked && is_confirmed(shoot);
    if deleting && is_forced(shoot) {
        return OwnerAction::Operation(Operation::ForceDelete);
    }
    OwnerAction::Operation(match journey(shoot) {
        // A new destination was named before any work began at this destination.
        Journey::Arriving if is_move_wanted(shoot) && !deleting => return OwnerAction::PassedOn,
        Journey::Arriving | Journey::Restoring => Operation::Restore,
        Journey::Leaving if deleting || !is_move_wanted(shoot) || is_claimed(shoot) => Operation::Restore,
        Journey::Leaving => Operation::Migrate,
        Journey::Settled if deleting && may_be_deleted(shoot) => Operation::Delete,
        // Data that the seed has not opened are never reconciled: the objects of the shoot are not here yet.
        Journey::Settled if deleting || is_claimed(shoot) => Operation::Restore,
        Journey::Settled if is_half_created(shoot) => Operation::Create,
        Journey::Settled if asked => return OwnerAction::Confirmation,
        Journey::Settled if may_travel(shoot) => Operation::Migrate,
        Journey::Settled if status(shoot).is_none_or(|status| status.last_operation.is_none()) => {
            Operation::Create
        }
        Journey::Settled => Operation::Reconcile,
    })
}

/// Whether the seed may delete the shoot, by the recorded ownership: a claimant finishes first, and a leaving
/// owner comes back. The crate `ownership` decides. Where no phases are recorded, `status.lastOperation` was
/// decisive already.
fn may_be_deleted(shoot: &Shoot) -> bool {
    ownership_status::ownership(shoot).map_or(true, |recorded| recorded.may_be_deleted_by(&recorded.now.seed))
}

/// Whether the user has confirmed the deletion of the Shoot.
#[must_use]
pub fn is_confirmed(shoot: &Shoot) -> bool {
    is_true(shoot, CONFIRMATION_DELETION)
}

/// Whether the deletion of the Shoot is forced.
#[must_use]
pub fn is_forced(shoot: &Shoot) -> bool {
    is_true(shoot, CONFIRMATION_FORCE_DELETION)
}

fn is_true(shoot: &Shoot, annotation: &str) -> bool {
    shoot
        .annotations()
        .get(annotation)
        .is_some_and(|value| value == "true")
}

/// Whether the seed got the shoot in a new epoch and has not opened the data yet. The seed opens the data
/// before any other operation, wherever the Shoot is wanted by then, and hands the shoot over only after
/// that.
#[must_use]
pub fn is_claimed(shoot: &Shoot) -> bool {
    let recorded = status(shoot).and_then(|status| status.ownership.as_ref());
    matches!(
        recorded.and_then(|recorded| recorded.phase),
        Some(OwnershipPhase::Claiming | OwnershipPhase::Opening)
    )
}

/// Whether a seed has taken the Shoot and has not reported the end of the creation, so that no backup of the
/// shoot is known. A seed takes a Shoot and records the creation in a single write, and policy
/// `shoot-ownership` keeps a last operation. So a hosted shoot without a last operation was never created.
#[must_use]
pub fn is_half_created(shoot: &Shoot) -> bool {
    let last = status(shoot).and_then(|status| status.last_operation.as_ref());
    let is_unfinished = match last {
        Some(last) => last.type_ == Type::Create && last.state != State::Succeeded,
        None => hosting_seed(shoot).is_some(),
    };
    is_unfinished && !has_earlier_epoch(shoot)
}
