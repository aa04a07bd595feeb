//! Where a Shoot is between two seeds, as its status says, and the approval of its move.
//!
//! `status.seedName` is the only point of no return. Before it is written the source can always bring the
//! shoot back to life; after it only the seed that it names can.

use api::{
    gardencore::{Shoot, shoot::MigrationApproval},
    meta::{LastOperationState as State, LastOperationType as Type},
};

use crate::{hosting_seed, status, wanted_seed};

/// Where a Shoot is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journey {
    /// It is complete where it is, or was never complete.
    Settled,
    /// Its present seed has begun to prepare it for another one.
    Leaving,
    /// It was handed over, and nothing was begun where it is now.
    Arriving,
    /// The seed on which it is now has begun to restore it.
    Restoring,
}

/// Where the Shoot is on its way.
#[must_use]
pub fn journey(shoot: &Shoot) -> Journey {
    let last = status(shoot).and_then(|status| status.last_operation.as_ref());
    match last.map(|last| (last.type_, last.state)) {
        Some((Type::Migrate, State::Succeeded | State::Aborted)) => Journey::Arriving,
        // It waits, and has begun nothing.
        Some((Type::Migrate, State::Pending)) => Journey::Settled,
        Some((Type::Migrate, _)) => Journey::Leaving,
        Some((Type::Restore, state)) if state != State::Succeeded => Journey::Restoring,
        _ => Journey::Settled,
    }
}

/// Whether the Shoot is to move away from the seed that its status names (R7-45). A Shoot whose status names
/// no seed was never created and cannot move (R7-43).
#[must_use]
pub fn is_move_wanted(shoot: &Shoot) -> bool {
    matches!((wanted_seed(shoot), hosting_seed(shoot)), (Some(to), Some(from)) if to != from)
}

/// The approval of exactly the move that is wanted now: from this source to this destination. One that was
/// judged for another destination counts for nothing.
#[must_use]
pub fn approval(shoot: &Shoot) -> Option<&MigrationApproval> {
    let approval = status(shoot)?.migration.as_ref()?;
    let (from, to) = (hosting_seed(shoot)?, wanted_seed(shoot)?);
    (from != to && approval.source == from && approval.destination == to).then_some(approval)
}

/// Whether a move may begin: it is approved as the Shoot is specified now (R7-46, I8).
pub(crate) fn may_travel(shoot: &Shoot) -> bool {
    approval(shoot).is_some_and(|approval| Some(approval.generation) == shoot.metadata.generation)
}
