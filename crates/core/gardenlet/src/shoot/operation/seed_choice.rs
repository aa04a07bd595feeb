//! Before the first write of the status of a new Shoot, the gardenlet checks taints and selectors of its own
//! Seed. Policy `shoot-seed-choice` compares a Shoot with the Seeds that exist at that time, and a user can
//! name a Seed that is registered later.
//!
//! Rights of a seed follow `status.seedName`, so a refused Shoot gives the seed no right. Controller
//! `shoot-placement` of garden-controller-manager reports the refusal in the status.

use api::{
    gardencore::{CloudProfile, Seed, Shoot},
    meta::ErrorCode,
};
use kube::Api;
use parts::{Facts, tenant};
use placement::{Operation, is_hosted, names, seed_choice};
use runtime::{Error, Result, client::Cluster as _, error::Explain as _};

use crate::{Context, shoot::leaving::leave};

/// Why the own seed may not take the Shoot. `None` for a Shoot that a seed has taken, and for a Shoot with a
/// namespace in the own seed: a shoot that runs stays, also after a new taint. `project`: the name of the
/// Project, from [`crate::shoot::project`].
///
/// # Errors
/// The garden or the seed does not answer, or the namespace belongs to a different Shoot.
pub(crate) async fn refusal(context: &Context, shoot: &Shoot, project: &str) -> Result<Option<Error>> {
    if is_hosted(shoot) {
        return Ok(None);
    }
    let own = context.seed_name.as_str();
    let seeds: Api<Seed> = context.garden.cluster_wide();
    let seed = seeds.get_opt(own).await;
    let seed = seed.context(format_args!("could not read Seed {own}"))?;
    let obstacle = match seed {
        Some(seed) => {
            let profile = cloud_profile(context, shoot).await?;
            seed_choice::obstacle_to_creation(shoot, &seed, profile.as_ref())
        }
        None => Some(format!("there is no Seed {own} in the garden: register the Seed")),
    };
    let Some(obstacle) = obstacle else {
        return Ok(None);
    };
    let namespace = names::technical_id(shoot, project);
    let residency = leave::residency(context, namespace, tenant(shoot));
    let runs = residency.read_namespace().await?.is_some();
    Ok((!runs).then(|| refused(obstacle)))
}

/// The CloudProfile that the Shoot names. The facts report a CloudProfile that does not exist.
async fn cloud_profile(context: &Context, shoot: &Shoot) -> Result<Option<CloudProfile>> {
    let Some(name) = shoot.spec.cloud_profile_name() else {
        return Ok(None);
    };
    let profiles: Api<CloudProfile> = context.garden.cluster_wide();
    let profile = profiles.get_opt(name).await;
    profile.context(format_args!("could not read CloudProfile {name}"))
}

/// The same for a Shoot that a gardenlet of an earlier version took before the check.
///
/// # Errors
/// The Seed may not host the shoot.
pub(super) async fn check(facts: &Facts) -> Result<()> {
    if facts.operation != Operation::Create {
        return Ok(());
    }
    let (shoot, seed) = (&facts.shoot, &facts.seed_object);
    let Some(obstacle) = seed_choice::obstacle_to_creation(shoot, seed, Some(&facts.cloud_profile)) else {
        return Ok(());
    };
    if facts.residency.read_namespace().await?.is_some() {
        return Ok(());
    }
    Err(refused(obstacle))
}

fn refused(obstacle: String) -> Error {
    Error::config(ErrorCode::ErrConfigurationProblem, obstacle)
}
