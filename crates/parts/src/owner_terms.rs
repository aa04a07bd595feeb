//! By which intervals and bounds it is asked whose a shoot is, and how long a destination waits for those who had it before.

use std::{collections::BTreeSet, time::Duration};

use api::gardencore::{Seed as SeedObject, Shoot};
use kube::ResourceExt;
use ownership::{Phase, Terms};
use placement::record;
use runtime::{Cluster, Garden, Result, error::Explain};

use crate::configuration_problem;

/// Those of this seed. While it claims the shoot the fence is the longest that the Seed of anybody gives of whom something may be left.
/// A Seed says more before its processes do: they follow with the next reconciliation of each shoot.
pub(crate) async fn of(garden: &Garden, usual: Terms, own: &SeedObject, shoot: &Shoot) -> Result<Terms> {
    let terms = own_terms(usual, own)?;
    let mut fences = Vec::new();
    for name in others(shoot, &own.name_any()) {
        let seeds = garden.cluster_wide::<SeedObject>();
        let found = seeds.get_opt(&name).await;
        let found = found.context(format_args!("could not read Seed {name}, which had the shoot"))?;
        fences.extend(found.map(|seed| fence_of(usual, &seed)).transpose()?);
        fences.extend(recorded_fence(shoot, &name));
    }
    Ok(terms.waiting_for(fences))
}

/// Never shorter than what is usual: what an etcd was told before a Seed gave less, nobody knows.
fn own_terms(usual: Terms, own: &SeedObject) -> Result<Terms> {
    let checks = own.spec.owner_checks().filter(|checks| checks.enabled);
    let terms = checks.map_or(Ok(usual), |checks| owner_checks::terms(checks, usual));
    let least = [Some(usual.settings().fence), told(own)];
    Ok(terms
        .map_err(configuration_problem)?
        .waiting_for(least.into_iter().flatten()))
}

/// The longest that its gardenlet has said the Seed gives while it had shoots. What was written into the Seed of a seed that is dead
/// since, none of its processes has heard.
fn told(seed: &SeedObject) -> Option<Duration> {
    let seconds = seed.status.as_ref()?.owner_check_fence_seconds?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// The fence that the gardenlet of a seed has recorded in the Shoot. It counts also when the Seed was deleted.
fn recorded_fence(shoot: &Shoot, seed: &str) -> Option<Duration> {
    let seconds = shoot.status.as_ref()?.owner_check_in(seed)?.fence_seconds?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// How long is waited for what acts by the settings of this Seed. Also where it does not check owners any more: something of it may,
/// that has not heard of it.
fn fence_of(usual: Terms, seed: &SeedObject) -> Result<Duration> {
    let told = told(seed).unwrap_or_default();
    let Some(checks) = seed.spec.owner_checks() else {
        return Ok(usual.settings().fence.max(told));
    };
    let given = owner_checks::needed_fence(checks, usual).map_err(|why| {
        configuration_problem(format!(
            "how long seed {}, which had the shoot, has to be waited for cannot be read: {why}",
            seed.name_any()
        ))
    })?;
    Ok(given.max(told))
}

/// The seeds of which something may be left, while this one claims the shoot.
pub(crate) fn others(shoot: &Shoot, own: &str) -> BTreeSet<String> {
    let claims = record::ownership(shoot)
        .ok()
        .filter(|recorded| matches!(recorded.phase, Phase::Claiming | Phase::Opening));
    let (Some(recorded), Some(status)) = (claims, &shoot.status) else {
        return BTreeSet::new();
    };
    let formers = status.former_seeds.iter().map(|former| former.name.clone());
    formers
        .chain(recorded.source.map(|source| source.seed))
        .filter(|name| name != own)
        .collect()
}

#[cfg(test)]
#[path = "owner_terms_tests.rs"]
mod tests;
