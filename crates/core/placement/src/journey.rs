//! The progress of a Shoot between two seeds, by the status, and the approval of the move.
//!
//! The write of `status.seedName` is the only point of no return. Before that write the source can always
//! restore the shoot. After that write only the named seed can.

use api::{
    gardencore::{Shoot, shoot::MigrationApproval},
    meta::{LastOperationState as State, LastOperationType as Type},
};

use crate::{hosting_seed, status, wanted_seed};

/// The progress of a Shoot's move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journey {
    /// The shoot is complete on the present seed, or was never complete.
    Settled,
    /// The present seed has begun to prepare the shoot for another seed.
    Leaving,
    /// The shoot was handed over, and the present seed has not begun.
    Arriving,
    /// The present seed has begun to restore the shoot.
    Restoring,
}

/// The progress of the Shoot's move.
#[must_use]
pub fn journey(shoot: &Shoot) -> Journey {
    let last = status(shoot).and_then(|status| status.last_operation.as_ref());
    match last.map(|last| (last.type_, last.state)) {
        // Only a hostile host hands over such a Shoot. A creation would begin with an empty etcd.
        None | Some((Type::Create, _)) if has_earlier_epoch(shoot) => Journey::Arriving,
        Some((Type::Migrate, State::Succeeded | State::Aborted)) => Journey::Arriving,
        // The move waits, and has not begun.
        Some((Type::Migrate, State::Pending)) => Journey::Settled,
        Some((Type::Migrate, _)) => Journey::Leaving,
        Some((Type::Restore, state)) if state != State::Succeeded => Journey::Restoring,
        _ => Journey::Settled,
    }
}

/// Whether the shoot has data of an earlier ownership epoch: the present seed got the shoot by a hand-over,
/// or kept the shoot in a new epoch. Such a shoot is never created again, whatever `status.lastOperation`
/// says: the former host wrote that field. The API server lets no seed change the epoch without a hand-over
/// (policy `shoot-ownership`).
#[must_use]
pub fn has_earlier_epoch(shoot: &Shoot) -> bool {
    status(shoot).is_some_and(|status| {
        let source = status
            .ownership
            .as_ref()
            .and_then(|recorded| recorded.source.as_ref());
        status.epoch() > 1 || source.is_some()
    })
}

/// Whether the Shoot is to move away from the seed in the status (R7-45). A Shoot without a seed in the
/// status was never created and cannot move (R7-43).
#[must_use]
pub fn is_move_wanted(shoot: &Shoot) -> bool {
    matches!((wanted_seed(shoot), hosting_seed(shoot)), (Some(to), Some(from)) if to != from)
}

/// The approval of exactly the move that is wanted now: from this source to this destination. An approval for
/// another destination does not count.
#[must_use]
pub fn approval(shoot: &Shoot) -> Option<&MigrationApproval> {
    let approval = status(shoot)?.migration.as_ref()?;
    let (from, to) = (hosting_seed(shoot)?, wanted_seed(shoot)?);
    (from != to && approval.source == from && approval.destination == to).then_some(approval)
}

/// Whether a move may begin: the move is approved for the present generation of the Shoot (R7-46, I8).
pub(crate) fn may_travel(shoot: &Shoot) -> bool {
    approval(shoot).is_some_and(|approval| Some(approval.generation) == shoot.metadata.generation)
}
