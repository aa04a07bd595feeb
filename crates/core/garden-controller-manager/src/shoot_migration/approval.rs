//! Decides the content of `status.migration`, the approval of a move: pure decisions.
//!
//! | the shoot | the requested move | `status.migration` |
//! |---|---|---|
//! | is settled | may begin | this destination, this generation, this specification |
//! | is settled | may not begin, or there is none | none |
//! | is leaving | to the approved destination | unchanged: edits wait |
//! | is leaving | to another destination, which is ready | the new destination; the specification stays |
//! | is leaving | none: the move was cancelled | none |
//! | has arrived, no restore has begun | to another destination, which is ready | the same, and a hand-on |
//! | has arrived, no restore has begun | back to a former seed | unchanged: only a takeover gives it back |
//! | has arrived, without a record of a hand-over | any | unchanged |
//! | is being restored | any | unchanged |
//!
//! Guarantees: once a move has begun, its specification does not change until the restore is recorded as
//! succeeded. Without a preflight result `True` for exactly this destination the approval can only be
//! removed.

use api::{
    constants::SHOOT_FORCE_RESTORE,
    gardencore::{
        Shoot, ShootStatus,
        shoot::{FormerSeed, MigrationApproval, Ownership, OwnershipPhase, SourceBucket},
    },
    meta::{LastOperationState as State, PackedExtension},
};
use placement::{Journey, journey};
use runtime::Result;

use super::{
    former_seeds,
    preflight::{Verdict, wanted_move},
};

/// The reason of a move of a shoot that has arrived, while no record shows the hand-over.
const HAND_OVER_NOT_RECORDED: &str = "HandOverNotRecorded";

/// The values to write to the status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// `status.migration`.
    pub approval: Option<MigrationApproval>,
    /// A second hand-over, before the present seed has begun to restore.
    pub hand_on: Option<HandOn>,
}

/// A hand-over that garden-controller-manager itself writes, in a single write.
#[derive(Clone, Debug, PartialEq)]
pub struct HandOn {
    /// `status.seedName`.
    pub to: String,
    /// `status.ownership`: the epoch rises by one.
    pub ownership: Ownership,
    /// `status.formerSeeds`, including the seed that releases the shoot.
    pub former_seeds: Vec<FormerSeed>,
}

/// The content of the status after the preflight; `ready`: the move that the Shoot requests may begin.
///
/// # Errors
/// The Shoot does not serialise, which is a bug.
pub fn decide(shoot: &Shoot, ready: bool) -> Result<Decision> {
    let old = shoot.status.as_ref().and_then(|status| status.migration.as_ref());
    let wanted = wanted_move(shoot);
    let allowed = wanted.filter(|_| ready);
    let approval = match (journey(shoot), allowed) {
        (Journey::Settled, Some(route)) => Some(approve(shoot, route, None)?),
        (Journey::Settled, None) => None,
        (Journey::Leaving, _) if wanted.is_none() => None,
        (Journey::Leaving, Some(route)) if old.is_none_or(|old| old.destination != route.1) => {
            Some(approve(shoot, route, old)?)
        }
        (Journey::Arriving, Some(route)) if nothing_was_begun(shoot) && !was_on(shoot, route.1) => {
            return Ok(Decision {
                approval: Some(approve(shoot, route, old)?),
                hand_on: Some(hand_on(shoot, route)),
            });
        }
        (Journey::Leaving | Journey::Arriving | Journey::Restoring, _) => old.cloned(),
    };
    Ok(Decision {
        approval,
        hand_on: None,
    })
}

/// The approved specification for a shoot that is taken over without its source: the specification approved
/// when the move began, otherwise the current specification.
pub(crate) fn travels(shoot: &Shoot) -> Result<MigrationApproval> {
    let old = shoot.status.as_ref().and_then(|status| status.migration.as_ref());
    let begun = old.filter(|_| journey(shoot) != Journey::Settled);
    let route = wanted_move(shoot)
        .ok_or_else(|| runtime::Error::bug("a shoot that is to move nowhere is taken over"))?;
    approve(shoot, route, begun)
}

/// Whether the present seed has begun no restore. A source that hands over reports success. Before a forced
/// restore (`Aborted`) the work of the seed is unknown. A seed that reports success but still owns the shoot
/// according to the record has not handed over.
fn nothing_was_begun(shoot: &Shoot) -> bool {
    let status = shoot.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    let phase = status.and_then(|status| status.ownership.as_ref()?.phase);
    last.is_some_and(|last| last.state == State::Succeeded)
        && match phase {
            // Only a hand-over records this phase (policy shoot-ownership). The entry of the source may be
            // gone: a source that has opened no data, or whose Seed is gone, leaves no entry.
            Some(phase) => phase == OwnershipPhase::Claiming,
            None => was_handed_over(shoot),
        }
}

/// Whether a former seed had the epoch before. Each hand-over raises the epoch and adds the source in the
/// same write. Without that entry the host of a shoot without phases has only reported a hand-over, and
/// serves the shoot.
fn was_handed_over(shoot: &Shoot) -> bool {
    let epoch = shoot.status.as_ref().map_or(1, ShootStatus::epoch);
    let mut formers = former_seeds::entries(shoot).iter();
    epoch > 1 && formers.any(|former| former.epoch == epoch - 1)
}

/// The verdict on a move of a shoot that has arrived, where the record of the hand-over is missing: the
/// garden does not hand the shoot on, and the user must see the reason.
pub(super) fn report_refused_hand_on(shoot: &Shoot, verdict: Verdict) -> Verdict {
    let Some((host, destination)) = wanted_move(shoot).filter(|_| verdict.ready) else {
        return verdict;
    };
    let status = shoot.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    let has_succeeded = last.is_some_and(|last| last.state == State::Succeeded);
    let has_arrived = journey(shoot) == Journey::Arriving && has_succeeded;
    if !has_arrived || nothing_was_begun(shoot) || was_on(shoot, destination) {
        return verdict;
    }
    // A takeover needs recorded phases.
    let has_phases =
        status.is_some_and(|status| status.ownership.as_ref().is_some_and(|o| o.phase.is_some()));
    let force = if has_phases {
        format!(
            ", or annotate the Shoot with {SHOOT_FORCE_RESTORE}, which takes the verb force-restore on shoots"
        )
    } else {
        String::new()
    };
    Verdict {
        ready: false,
        reason: HAND_OVER_NOT_RECORDED,
        message: format!(
            "The Shoot reports a hand-over to seed {host}, and the garden has no record of a hand-over that seed {host} could pass on to \
             seed {destination}: set spec.seedName back to {host}{force}."
        ),
    }
}

/// Whether the shoot was on that seed and the seed has not cleaned up. Only a takeover gives the shoot back,
/// because a takeover checks that the present seed is dead.
fn was_on(shoot: &Shoot, seed: &str) -> bool {
    former_seeds::names(shoot).any(|former| former == seed)
}

/// Approves this route, with the specification of `begun` if the move has begun already.
fn approve(
    shoot: &Shoot,
    (source, destination): (&str, &str),
    begun: Option<&MigrationApproval>,
) -> Result<MigrationApproval> {
    let spec = match begun {
        Some(begun) => begun.spec.clone(),
        None => PackedExtension::encode(&shoot.spec)
            .map_err(|error| runtime::Error::bug("Shoot does not serialise").caused_by(error))?,
    };
    Ok(MigrationApproval {
        source: source.to_owned(),
        destination: destination.to_owned(),
        generation: shoot.metadata.generation.unwrap_or_default(),
        spec,
        // The seed that continues the move reports the next step.
        progress: None,
    })
}

fn hand_on(shoot: &Shoot, (source, destination): (&str, &str)) -> HandOn {
    let status = shoot.status.clone().unwrap_or_default();
    let epoch = status.epoch();
    let mut former_seeds = status.former_seeds;
    former_seeds.retain(|former| former.name != source);
    former_seeds.push(FormerSeed {
        name: source.to_owned(),
        epoch,
    });
    // The releasing seed has opened no data: the recorded source of the data stays.
    let former = status.ownership.unwrap_or_default();
    let bucket = former.recorded_source_bucket().map(str::to_owned);
    let mut ownership = Ownership {
        epoch: epoch + 1,
        drained: false,
        chain: None,
        approval: None,
        ..former
    };
    let epoch = ownership.source_epoch();
    ownership.source_bucket = bucket.map(|name| SourceBucket { name, epoch });
    HandOn {
        to: destination.to_owned(),
        ownership,
        former_seeds,
    }
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
