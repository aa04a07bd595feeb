//! What becomes of `status.migration`, the approval with which a shoot travels: pure decisions.
//!
//! | the shoot | a move is wanted | `status.migration` |
//! |---|---|---|
//! | is settled | and may begin | this destination, this generation, this specification |
//! | is settled | and may not begin, or none is | none |
//! | is leaving | to the destination that was approved | stays as it is: edits wait |
//! | is leaving | to another one, which may take it | the other destination; the specification stays |
//! | is leaving | to none: called off | none |
//! | has arrived, and nothing was begun | to another one, which may take it | the same, and the shoot is handed on to it |
//! | is being restored | is not looked at | stays as it is |
//!
//! Promises: once a move has begun, its specification changes no more until the restore is recorded as
//! succeeded. Without a verdict that is `True` for exactly this destination nothing but a removal happens.

use api::{
    gardencore::{
        Shoot,
        shoot::{FormerSeed, MigrationApproval, Ownership, OwnershipPhase},
    },
    meta::{LastOperationState as State, PackedExtension},
};
use placement::{Journey, journey};
use runtime::Result;

use super::preflight::wanted_move;

/// What is to stand in the status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decision {
    /// `status.migration`.
    pub approval: Option<MigrationApproval>,
    /// The shoot changes hands once more, before its present seed has begun anything.
    pub hand_on: Option<HandOn>,
}

/// A hand-over that garden-controller-manager itself writes, all of it in one write.
#[derive(Clone, Debug, PartialEq)]
pub struct HandOn {
    /// `status.seedName`.
    pub to: String,
    /// `status.ownership`: one more than before.
    pub ownership: Ownership,
    /// `status.formerSeeds`, with the seed that lets go.
    pub former_seeds: Vec<FormerSeed>,
}

/// What is to stand in the status after this verdict; `ready`: the move that the Shoot wants may begin.
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
        (Journey::Arriving, Some(route)) if nothing_was_begun(shoot) => {
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

/// With what the shoot travels that is taken over without its source: with what was approved when the move
/// began, otherwise with what is specified now.
pub(crate) fn travels(shoot: &Shoot) -> Result<MigrationApproval> {
    let old = shoot.status.as_ref().and_then(|status| status.migration.as_ref());
    let begun = old.filter(|_| journey(shoot) != Journey::Settled);
    let route = wanted_move(shoot)
        .ok_or_else(|| runtime::Error::bug("a shoot that is to move nowhere is taken over"))?;
    approve(shoot, route, begun)
}

/// A source that hands over says so; nobody knows what a seed did before a restore that is asked for by force
/// (`Aborted`). One that says so and has the shoot still, by the record, has not handed it over.
fn nothing_was_begun(shoot: &Shoot) -> bool {
    let status = shoot.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    let phase = status.and_then(|status| status.ownership.as_ref()?.phase);
    last.is_some_and(|last| last.state == State::Succeeded)
        && phase.is_none_or(|phase| phase == OwnershipPhase::Claiming)
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
            .map_err(|error| runtime::Error::bug(format!("Shoot does not serialise: {error}")))?,
    };
    Ok(MigrationApproval {
        source: source.to_owned(),
        destination: destination.to_owned(),
        generation: shoot.metadata.generation.unwrap_or_default(),
        spec,
        // The seed that goes on with the move reports its next step.
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
    HandOn {
        to: destination.to_owned(),
        // The seed that lets go has opened nothing: whose data they are stays, where it is recorded.
        ownership: Ownership {
            epoch: epoch + 1,
            drained: false,
            chain: None,
            approval: None,
            ..status.ownership.unwrap_or_default()
        },
        former_seeds,
    }
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
