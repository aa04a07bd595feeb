//! Decides the next step for a shoot whose seed may be dead: a pure decision.
//!
//! | approval | requested | the source | next step |
//! |---|---|---|---|
//! | none | by annotation | dead or stuck | record the approval |
//! | none | by annotation | alive, and the planned move passes a hold by force | await the planned approval |
//! | none | by annotation | alive, or there is another obstacle | refuse, and remove the annotation |
//! | any | either | dead or stuck, and the destination is temporarily not ready | wait |
//! | none | not requested | silent for the grace period, and without progress | record the approval |
//! | recorded | by annotation still | | remove the annotation |
//! | recorded | | still dead or stuck, no obstacle | hand over the shoot |
//! | recorded | | alive again, or the approval is for a different move, or too old | withdraw the approval |
//!
//! Once the planned move by force is approved, the annotation is removed.
//!
//! A move that was cancelled after its source had begun to seal (`Sealing`) needs no approval. Nor does a
//! shoot whose seed has recorded `Sealing` without a move. The source keeps the shoot in a new epoch, because
//! a sealed epoch never serves again. `renewal` decides about a new epoch on an operator's request,
//! `statement` about a statement on former seeds of a claimed shoot.

use std::time::Duration;

use api::{
    constants::SHOOT_FORCE_RESTORE,
    gardencore::{
        Shoot,
        shoot::{ApprovedBy, OwnershipApproval},
    },
};
use kube::ResourceExt;
use ownership::{Approval, Ownership, Phase, Step, Writer};
use placement::{Operation, OwnerAction};

use super::{
    approval::approve,
    host_clock,
    next_step::{Decision, Request, consent},
    obstacle::{
        Facts, STALLED_AFTER, is_failing, route, route_after_recovery, source_is_dead, states_source_is_off,
    },
    renewal,
    sightings::Silence,
};
use crate::shoot_migration::{ForcedMove, Obstacle, forced_move, wanted_move};

/// Longest requeue interval, for any calculated time; the shortest is [`AT_LEAST`].
const AT_MOST: Duration = Duration::from_secs(600);
const AT_LEAST: Duration = Duration::from_secs(1);
/// Pause between checks of the source while a planned move by force waits for a slot at the destination.
const RECHECK_OF_SOURCE: Duration = Duration::from_secs(60);

/// The next step.
#[must_use]
pub fn decide(facts: &Facts<'_>) -> Decision {
    if let Some(becomes) = renewed(facts.shoot) {
        return if renewal::is_asked(facts.shoot) {
            Decision::Consume(Request::Renewal)
        } else {
            Decision::Renew {
                becomes,
                approval: None,
            }
        };
    }
    let asked = facts.shoot.annotations().contains_key(SHOOT_FORCE_RESTORE);
    match consent(facts.shoot) {
        Some(approval) if approval.renews() => renewal::on_consent(facts, approval),
        // The annotation states more than the recorded approval, so it is a new request.
        Some(approval) if states_source_is_off(facts.shoot) && !approval.source_is_off => on_request(facts),
        Some(approval) => match still_good(facts, approval) {
            Err(why) => Decision::Withdraw(why),
            Ok(()) if asked => Decision::Consume(Request::Takeover),
            Ok(()) => hand_over(facts, approval),
        },
        None if renewal::is_asked(facts.shoot) => renewal::on_request(facts),
        None if asked => on_request(facts),
        None => on_silence(facts),
    }
}

/// Whether a decision is possible at all: reading the inputs in [`Facts`] costs requests.
#[must_use]
pub fn is_open(facts: &Facts<'_>) -> bool {
    facts.shoot.annotations().contains_key(SHOOT_FORCE_RESTORE)
        || renewal::is_asked(facts.shoot)
        || consent(facts.shoot).is_some()
        || renewed(facts.shoot).is_some()
        || source_is_dead(facts, ApprovedBy::Silence).is_ok()
}

/// The new ownership of a shoot that its own seed must take back, or has begun to take back, although its
/// epoch is being sealed. `None` for a shoot that is to move, even if its seed reports a restore.
///
/// Also for a shoot that is to be reconciled: its seed records phase `Sealing` without a move, and no later
/// reconciliation would begin.
#[must_use]
pub fn renewed(shoot: &Shoot) -> Option<Ownership<String>> {
    let is_kept = !placement::is_move_wanted(shoot) || shoot.metadata.deletion_timestamp.is_some();
    let is_taken_back = matches!(
        placement::wanted(shoot),
        OwnerAction::Operation(Operation::Restore | Operation::Reconcile)
    );
    let now = placement::ownership_status::ownership(shoot).ok()?;
    if !is_kept || !is_taken_back || now.phase != Phase::Sealing {
        return None;
    }
    let same = Approval {
        from: now.now.clone(),
        to: now.now.seed.clone(),
    };
    let write = now.step(&Writer::Garden, Step::Grant(same)).ok()?;
    Some(write.becomes)
}

fn on_request(facts: &Facts<'_>) -> Decision {
    if let Some(decision) = on_forced_move(facts) {
        return decision;
    }
    let (from, to, now) = match route_after_recovery(facts) {
        Ok(route) => route,
        Err(why) => return Decision::Refuse(Request::Takeover, why),
    };
    let may_begin = source_is_dead(facts, ApprovedBy::Operator).and_then(|()| route(facts).map(drop));
    match may_begin {
        Err(Obstacle::Final(why)) => Decision::Refuse(Request::Takeover, why),
        // The constraint ReadyForMigration reports what the destination lacks.
        Err(Obstacle::Passing(_, left)) => wait(left),
        Ok(()) => {
            let stated = if facts.source_is_off() {
                format!(" and stated that no process of seed {from} runs any more")
            } else {
                String::new()
            };
            let reason = format!(
                "An operator asked to take the shoot over from seed {from} to seed {to} without its help{stated}; {}.",
                state_of_source(facts)
            );
            approve(facts, ApprovedBy::Operator, reason, (from, to, now.now.epoch))
        }
    }
}

/// The planned move answers a request that overrides a hold of that move, while the source lives.
fn on_forced_move(facts: &Facts<'_>) -> Option<Decision> {
    let planned = forced_move(facts.shoot).filter(|_| !facts.source_is_off())?;
    match (planned, facts.silence) {
        (ForcedMove::Approved, Silence::Fresh) => Some(Decision::Consume(Request::Takeover)),
        (ForcedMove::Waits, Silence::Unknown(left)) => Some(wait(left)),
        // No watch reports that the source falls silent meanwhile.
        (ForcedMove::Waits, Silence::Fresh) => Some(wait(RECHECK_OF_SOURCE)),
        (ForcedMove::Approved, Silence::Unknown(_)) | (_, Silence::Silent(_)) => None,
    }
}

fn state_of_source(facts: &Facts<'_>) -> String {
    let stuck_for = facts.without_progress.as_secs();
    match facts.silence {
        Silence::Silent(silent) => format!("its Lease was not renewed for {} s", silent.as_secs()),
        Silence::Fresh | Silence::Unknown(_) if is_failing(facts.shoot) => {
            format!("its migration fails and had made no progress for {stuck_for} s")
        }
        Silence::Fresh | Silence::Unknown(_) => {
            format!("its operation had made no progress for {stuck_for} s")
        }
    }
}

fn on_silence(facts: &Facts<'_>) -> Decision {
    let Some(grace) = facts.grace.filter(|_| wanted_move(facts.shoot).is_some()) else {
        return Decision::Nothing;
    };
    if host_clock::obstacle_to_silence(facts.shoot).is_some() {
        // Reported by the condition OwnershipVerified.
        return Decision::Nothing;
    }
    let silent = match facts.silence {
        Silence::Fresh => Duration::ZERO,
        Silence::Unknown(left) => return wait(grace.max(left)),
        Silence::Silent(silent) => silent,
    };
    if source_is_dead(facts, ApprovedBy::Silence).is_err() {
        let stalls_in = STALLED_AFTER.saturating_sub(facts.unchanged);
        let over_in = grace.saturating_sub(silent);
        return wait(if over_in.is_zero() { stalls_in } else { over_in });
    }
    let Ok((from, to, now)) = route(facts) else {
        // Told by the constraint ReadyForMigration, or a setting that no time changes; both are watched.
        return Decision::Nothing;
    };
    let reason = format!(
        "The Lease of seed {from} was not renewed for {} s; shoots that are to leave such a seed are taken over after {} s.",
        silent.as_secs(),
        grace.as_secs()
    );
    approve(facts, ApprovedBy::Silence, reason, (from, to, now.now.epoch))
}

/// Whether an approval is still valid: every condition of the approval must hold at its use.
fn still_good(facts: &Facts<'_>, approval: &OwnershipApproval) -> Result<(), String> {
    let (from, to, now) = route_after_recovery(facts)?;
    let is_of = facts.shoot.uid().as_deref() == Some(approval.uid.as_str())
        && (from, to, now.now.epoch) == (approval.from.as_str(), approval.to.as_str(), approval.epoch);
    if !is_of {
        return Err(format!(
            "it is for seed {} in epoch {} and for seed {}",
            approval.from, approval.epoch, approval.to
        ));
    }
    if facts.now >= approval.expiry.0 {
        return Err("it is too old".to_owned());
    }
    match source_is_dead(facts, approval.by) {
        // This process has just started. The process that recorded the approval had observed the source for
        // long enough.
        Ok(()) | Err(Obstacle::Passing(..)) => Ok(()),
        Err(Obstacle::Final(why)) => Err(why),
    }
}

fn hand_over(facts: &Facts<'_>, approval: &OwnershipApproval) -> Decision {
    if let Err(Obstacle::Passing(_, left)) = source_is_dead(facts, approval.by) {
        return wait(left);
    }
    let (to, now) = match route(facts) {
        Ok((_, to, now)) => (to, now),
        Err(Obstacle::Passing(_, left)) => return wait(left),
        Err(Obstacle::Final(why)) => return Decision::Withdraw(why),
    };
    let consent = Approval {
        from: now.now.clone(),
        to: to.to_owned(),
    };
    match now.step(&Writer::Garden, Step::Grant(consent)) {
        Ok(write) => Decision::HandOver {
            becomes: write.becomes,
            approval: approval.clone(),
        },
        Err(refused) => Decision::Withdraw(refused.to_string()),
    }
}

fn wait(time: Duration) -> Decision {
    Decision::Wait(time.clamp(AT_LEAST, AT_MOST))
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
