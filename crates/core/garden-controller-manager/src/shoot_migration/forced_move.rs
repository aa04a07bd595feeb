//! The answer to a request by force while the source lives: the planned move, if the request overrides a
//! check of that move. Pure.

use api::{
    constants::condition::{READY_FOR_MIGRATION, SHOOT_IGNORED, SHOOT_NOT_RECONCILED, WEBHOOKS_ON_LEASES},
    gardencore::Shoot,
    meta::ConditionStatus,
};
use placement::{Journey, is_reconciled, journey};

use super::{
    force, pause,
    preflight::{BUSY, FULL, wanted_move},
    source,
};

/// The state of a planned move that skips a check by force, and whose source lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForcedMove {
    /// The preflight decides, or the destination has no free slot yet.
    Waits,
    /// The move is approved for the present specification, and needs the annotation no more.
    Approved,
}

/// The planned move that answers a request by force. `None`: the request overrides no check, or an obstacle
/// is left that force does not override.
pub(crate) fn forced_move(shoot: &Shoot) -> Option<ForcedMove> {
    let is_held = !is_reconciled(shoot) || pause::is_ignored(shoot) || source::stops_leader_election(shoot);
    let is_planned = wanted_move(shoot).is_some() && journey(shoot) == Journey::Settled;
    if !force::is_asked(shoot) || !is_planned || !is_held {
        return None;
    }
    if force::is_approved(shoot) {
        return Some(ForcedMove::Approved);
    }
    let constraint = shoot.status.as_ref()?.constraint(READY_FOR_MIGRATION)?;
    // A constraint that is True is of an earlier generation: the preflight is about to be repeated.
    let waits =
        constraint.status == ConditionStatus::True || [BUSY, FULL].contains(&constraint.reason.as_str());
    waits.then_some(ForcedMove::Waits)
}

/// Whether a check that force overrides is reported for a planned move that a person wants by force:
/// garden-controller-manager answers the request after the preflight was repeated without the check.
pub(crate) fn awaits_force(shoot: &Shoot) -> bool {
    let overridden = [SHOOT_NOT_RECONCILED, SHOOT_IGNORED, WEBHOOKS_ON_LEASES];
    let is_held = force::reported_reason(shoot).is_some_and(|reason| overridden.contains(&reason));
    is_held && force::is_asked(shoot) && wanted_move(shoot).is_some()
}

#[cfg(test)]
#[path = "forced_move_tests.rs"]
mod tests;
