//! What is done with a Shoot.

use api::{
    constants::{CONFIRMATION_DELETION, CONFIRMATION_FORCE_DELETION},
    gardencore::{Shoot, shoot::OwnershipPhase},
    meta::{LastOperationState as State, LastOperationType as Type},
};
use kube::ResourceExt;

use crate::{
    journey::{Journey, is_move_wanted, journey, may_travel},
    record, status,
};

/// What the owner does with a Shoot, and its providers with each extension object of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// It is made for the first time.
    Create,
    /// It is brought in line with its specification.
    Reconcile,
    /// It is taken over from another seed, or brought back to life after a move was called off.
    Restore,
    /// It is prepared for being taken over by another seed.
    Migrate,
    /// It is taken down.
    Delete,
    /// What can be is taken down, and the rest is let go of.
    ForceDelete,
}

impl Operation {
    /// As in `status.lastOperation.type`.
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

    /// Whether the shoot is to be gone afterwards.
    #[must_use]
    pub fn deletes(self) -> bool {
        matches!(self, Self::Delete | Self::ForceDelete)
    }

    /// Whether anything outside of the seed may be changed on the way: what is handed over is left as it is
    /// (I9).
    #[must_use]
    pub fn acts_outside(self) -> bool {
        self != Self::Migrate
    }

    /// Whether the control plane is to run afterwards.
    #[must_use]
    pub fn deploys(self) -> bool {
        matches!(self, Self::Create | Self::Reconcile | Self::Restore)
    }
}

/// What is wanted of a Shoot's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// This.
    Operation(Operation),
    /// Nothing until somebody else has written: garden-controller-manager passes the Shoot on to another
    /// seed.
    PassedOn,
    /// Nothing until its user has confirmed the deletion: policies that ask for it can be uninstalled.
    Confirmation,
}

/// What is wanted of the owner now.
///
/// A Shoot that is deleted on its way is first brought to where it can be deleted: extension objects that
/// were told to let go take nothing away outside, so that a deletion in the middle of a move would leave
/// everything there. What has begun is ended while nobody has confirmed a deletion, so that the shoot serves
/// meanwhile.
#[must_use]
pub fn wanted(shoot: &Shoot) -> Wanted {
    let asked = shoot.metadata.deletion_timestamp.is_some();
    let deleting = asked && is_confirmed(shoot);
    if deleting && is_forced(shoot) {
        return Wanted::Operation(Operation::ForceDelete);
    }
    Wanted::Operation(match journey(shoot) {
        // Another destination was named before anything began at this one.
        Journey::Arriving if is_move_wanted(shoot) && !deleting => return Wanted::PassedOn,
        Journey::Arriving | Journey::Restoring => Operation::Restore,
        Journey::Leaving if deleting || !is_move_wanted(shoot) || is_claimed(shoot) => Operation::Restore,
        Journey::Leaving => Operation::Migrate,
        Journey::Settled if deleting && may_be_deleted(shoot) => Operation::Delete,
        Journey::Settled if deleting => Operation::Restore,
        Journey::Settled if is_half_created(shoot) => Operation::Create,
        Journey::Settled if asked => return Wanted::Confirmation,
        Journey::Settled if may_travel(shoot) => Operation::Migrate,
        Journey::Settled if status(shoot).is_none_or(|status| status.last_operation.is_none()) => {
            Operation::Create
        }
        Journey::Settled => Operation::Reconcile,
    })
}

/// Whether its seed may take it down, by what is recorded of its ownership: a claimant finishes first, and
/// who has begun to leave comes back. Decided in the crate `ownership`. Where nobody records phases,
/// `status.lastOperation` has told it all.
fn may_be_deleted(shoot: &Shoot) -> bool {
    record::ownership(shoot).map_or(true, |recorded| recorded.may_be_deleted_by(&recorded.now.seed))
}

/// Whether the Shoot's user has said that its deletion is meant.
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

/// Whether its seed was given it in a new epoch and has not opened its data yet: it does so before anything
/// else, wherever the Shoot is wanted by then, and hands over nothing before.
#[must_use]
pub fn is_claimed(shoot: &Shoot) -> bool {
    let recorded = status(shoot).and_then(|status| status.ownership.as_ref());
    matches!(
        recorded.and_then(|recorded| recorded.phase),
        Some(OwnershipPhase::Claiming | OwnershipPhase::Opening)
    )
}

/// Whether its creation was begun and not ended.
fn is_half_created(shoot: &Shoot) -> bool {
    status(shoot)
        .and_then(|status| status.last_operation.as_ref())
        .is_some_and(|last| last.type_ == Type::Create && last.state != State::Succeeded)
}
