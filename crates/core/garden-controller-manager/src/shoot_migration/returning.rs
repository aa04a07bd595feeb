//! Whether a former seed of a shoot may be the destination: pure decisions.
//!
//! A former seed cleans up first, and then the shoot may move to that seed again. The exception is a former
//! seed that still has the data of the shoot, because the present seed has the shoot but has opened no data.
//! Without the exception, a hand-over to a seed that dies before the restore would leave the shoot without a
//! seed where only two seeds exist.
//!
//! | phase of the present seed | a person requests a takeover | the former seed |
//! |---|---|---|
//! | `Claiming`, with the data of this former seed | yes | may be the destination |
//! | `Claiming`, with the data of this former seed | no | refused; the message names the request |
//! | any other phase, or other data | any | refused until the seed has cleaned up |
//!
//! The data are of a former seed where `status.ownership.source` names the seed, in the epoch of its entry or
//! in an earlier epoch. `source` is the last epoch that was opened. So a seed that took the shoot back, and
//! lost the shoot again before phase `Opening`, still has these data, and may take the shoot back once more.
//!
//! The takeover fences the present seed as in every takeover, and is refused while the present seed lives.
//! The former seed keeps the volume of etcd-main until a restore is recorded, so the volume and the backups
//! of the seed are complete in phase `Claiming`.

use api::{
    constants::SHOOT_FORCE_RESTORE,
    gardencore::{Seed, Shoot},
};
use kube::ResourceExt;
use ownership::{Ownership, SeedEpoch};
use placement::{Journey, journey};

use super::former_seeds;
use crate::shoot_takeover::next_step::consent;

/// Why the seed may not be the destination yet; `None` for a seed without a former residency of the shoot,
/// and for a former seed that may take the shoot back.
pub(super) fn obstacle(shoot: &Shoot, seed: &Seed, back: &str) -> Option<String> {
    let name = seed.name_any();
    let epoch = former_epoch(shoot, &name)?;
    let begin =
        format!("Seed {name} has not cleaned up its former residency of the shoot yet (status.formerSeeds)");
    let Some(now) = unopened_claim(shoot, seed, epoch) else {
        let when = if journey(shoot) == Journey::Settled {
            ""
        } else {
            ", and cleans up after the present seed has restored the shoot"
        };
        return Some(format!(
            "{begin}{when}: the move begins once it has; name another seed, {back}."
        ));
    };
    if is_requested(shoot, &name) {
        return None;
    }
    let host = &now.now.seed;
    Some(format!(
        "{begin}, and still has the data of the shoot, because seed {host} has opened none: let seed \
         {host} restore the shoot and move the shoot after that, or, if seed {host} does not come back, \
         have the shoot taken back without its help ({SHOOT_FORCE_RESTORE}=true); name another seed, \
         {back}."
    ))
}

/// The newest epoch of the shoot in the former seed.
fn former_epoch(shoot: &Shoot, seed: &str) -> Option<i64> {
    let epochs = former_seeds::entries(shoot)
        .iter()
        .filter(|former| former.name == seed);
    epochs.map(|former| former.epoch).max()
}

/// The present claim, if the claimant has opened no data and the data are in the seed with that epoch. Only a
/// seed with owner checks can fence the claimant.
fn unopened_claim(shoot: &Shoot, seed: &Seed, epoch: i64) -> Option<Ownership<String>> {
    let residency = SeedEpoch {
        seed: seed.name_any(),
        epoch,
    };
    let now = placement::ownership_status::ownership(shoot).ok()?;
    (seed.spec.checks_owners() && now.may_return_to(&residency)).then_some(now)
}

/// Whether a person requests a takeover, or has requested the takeover to this seed in the present epoch.
fn is_requested(shoot: &Shoot, to: &str) -> bool {
    let is_consented = consent(shoot).is_some_and(|approval| approval.to == to);
    is_consented || shoot.annotations().contains_key(SHOOT_FORCE_RESTORE)
}

#[cfg(test)]
#[path = "returning_tests.rs"]
mod tests;
