//! Before the first object of a new shoot, the gardenlet checks taints and selectors of its own Seed. Policy
//! `shoot-seed-choice` compares a Shoot with the Seeds that exist at that time, and a user can name a Seed
//! that is registered later.

use api::meta::ErrorCode;
use parts::Facts;
use placement::{Operation, seed_choice};
use runtime::{Error, Result};

/// A shoot with a namespace in the seed stays, also after a new taint.
///
/// # Errors
/// The Seed may not host the shoot.
pub(super) async fn check(facts: &Facts) -> Result<()> {
    if facts.operation != Operation::Create {
        return Ok(());
    }
    let Some((_, sentence)) =
        seed_choice::obstacle(&facts.shoot, &facts.seed_object, Some(&facts.cloud_profile))
    else {
        return Ok(());
    };
    if facts.residency.read_namespace().await?.is_some() {
        return Ok(());
    }
    Err(Error::config(
        ErrorCode::ErrConfigurationProblem,
        format!("{sentence}, or delete this Shoot and create the Shoot with another seed."),
    ))
}
