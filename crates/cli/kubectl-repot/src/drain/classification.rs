//! The share of a shoot in a drain: pure decisions.

use api::{constants::condition::READY_FOR_MIGRATION, gardencore::Shoot, meta::ConditionStatus};
use placement::{Journey, approval, is_half_created, is_move_wanted, is_released, journey};
use serde_json::json;

use crate::{edit::Edit, failure::Failure, follow::Step, moves::arrival, terminal::one_line};

/// Reason of a move that waits for a free slot. The wait ends without an action of a user.
const DESTINATION_SEED_BUSY: &str = "DestinationSeedBusy";

/// The share of a shoot in a drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Share {
    /// A move is to be requested.
    ToMove,
    /// The shoot is on the way to this seed, or the move is requested.
    Moving(String),
    /// The shoot cannot move now, with the reason.
    LeftOut(String),
    /// The caller leaves the shoot out.
    Excluded,
}

/// The share of the shoot in a drain of seed `from`. `None`: the drain does not concern the shoot. No seed
/// has a control plane of a released shoot, and a user can keep such a Shoot for ever.
pub(super) fn classify(shoot: &Shoot, from: &str) -> Option<Share> {
    let status = shoot.status.as_ref().filter(|_| !is_released(shoot))?;
    let acting = status.seed_name.as_deref().filter(|seed| !seed.is_empty())?;
    let is_settled = journey(shoot) == Journey::Settled;
    if acting != from {
        let source = status.migration.as_ref().map(|approval| approval.source.as_str());
        return (source == Some(from) && !is_settled).then(|| Share::Moving(acting.to_owned()));
    }
    if shoot.metadata.deletion_timestamp.is_some() {
        return Some(Share::LeftOut("the shoot is being deleted".to_owned()));
    }
    if is_move_wanted(shoot) {
        return Some(Share::Moving(shoot.spec.seed_name.clone().unwrap_or_default()));
    }
    if !is_settled {
        return Some(Share::LeftOut(format!(
            "seed {from} takes the shoot back after a cancelled move: repeat the command after Restore Succeeded"
        )));
    }
    Some(if is_half_created(shoot) {
        Share::LeftOut("the creation of the shoot is not at its end: repeat the command later".to_owned())
    } else {
        Share::ToMove
    })
}

/// The end of the wait for a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MoveEnd {
    /// The control plane is complete in the destination.
    Arrived,
    /// The Shoot was deleted meanwhile.
    Deleted,
    /// The garden does not let the move begin, with the reason.
    Obstacle(String),
}

/// Whether the wait for the move ends.
///
/// # Errors
/// The shoot cannot arrive any more ([`arrival`]).
pub(super) fn judge_progress(shoot: Option<&Shoot>, to: &str) -> Result<Step<MoveEnd>, Failure> {
    let Some(read) = shoot else {
        return Ok(Step::Done(MoveEnd::Deleted));
    };
    if let Some(obstacle) = obstacle(read) {
        return Ok(Step::Done(MoveEnd::Obstacle(obstacle)));
    }
    Ok(match arrival(shoot, to)? {
        Step::Done(()) => Step::Done(MoveEnd::Arrived),
        Step::Waiting(state) => Step::Waiting(state),
    })
}

/// The obstacle to a requested move that a user has to remove.
fn obstacle(shoot: &Shoot) -> Option<String> {
    if !is_move_wanted(shoot) || journey(shoot) != Journey::Settled {
        return None;
    }
    let constraint = shoot.status.as_ref()?.constraint(READY_FOR_MIGRATION)?;
    let holds_back =
        constraint.status == ConditionStatus::False && constraint.reason != DESTINATION_SEED_BUSY;
    holds_back.then(|| format!("{}: {}", constraint.reason, one_line(&constraint.message)))
}

/// Whether the wait for the begin of the move ends. The result is `None` as soon as the garden has approved
/// the move. A request that waits for a slot takes no time of the bound of the move.
///
/// # Errors
/// The shoot cannot arrive any more ([`arrival`]).
pub(super) fn judge_begin(shoot: Option<&Shoot>, to: &str) -> Result<Step<Option<MoveEnd>>, Failure> {
    Ok(match judge_progress(shoot, to)? {
        Step::Done(end) => Step::Done(Some(end)),
        Step::Waiting(_) if shoot.is_some_and(has_begun) => Step::Done(None),
        Step::Waiting(state) => Step::Waiting(state),
    })
}

fn has_begun(shoot: &Shoot) -> bool {
    approval(shoot).is_some() || journey(shoot) != Journey::Settled
}

/// Whether a request waits for a slot, and the move has not begun. Moves of a different project can hold the
/// slots, so such a request shows no fault of the shoot or of a seed.
pub(super) fn waits_for_slot(shoot: &Shoot) -> bool {
    let status = shoot.status.as_ref();
    let constraint = status.and_then(|status| status.constraint(READY_FOR_MIGRATION));
    let is_busy = constraint.is_some_and(|constraint| {
        constraint.status == ConditionStatus::False && constraint.reason == DESTINATION_SEED_BUSY
    });
    is_busy && !has_begun(shoot)
}

/// The edit that takes back a request for a move that has not begun and is not approved.
pub(super) fn decide_withdrawal(shoot: &Shoot, from: &str, to: &str) -> Edit {
    let status = shoot.status.as_ref();
    // The approval of the move that the shoot came by approves no further move.
    let is_open = status.is_some_and(|status| status.seed_name.as_deref() == Some(from))
        && shoot.spec.seed_name.as_deref() == Some(to)
        && !has_begun(shoot);
    if is_open {
        Edit::Patch(json!({"spec": {"seedName": from}}))
    } else {
        Edit::Unchanged("The move has begun.".to_owned())
    }
}

#[cfg(test)]
#[path = "classification_tests.rs"]
mod tests;
