//! By which intervals and bounds it is asked whose a shoot is, and how long a destination waits for those who
//! had it before.

use std::{collections::BTreeSet, time::Duration};

use api::gardencore::{Seed as SeedObject, Shoot};
use kube::ResourceExt;
use ownership::{Phase, Settings, Terms};
use placement::record;
use runtime::{Cluster, Garden, Result, error::Explain};

use crate::configuration_problem;

/// The terms of this seed. While it claims the shoot, the fence covers the settings of all former owners
/// joined with its own settings, and is no shorter than any fence that was recorded. A Seed says more before
/// its processes do: they follow with the next reconciliation of each shoot.
pub(crate) async fn of(garden: &Garden, usual: Terms, own: &SeedObject, shoot: &Shoot) -> Result<Terms> {
    let mut formers = Vec::new();
    for name in others(shoot, &own.name_any()) {
        let seeds = garden.cluster_wide::<SeedObject>();
        let found = seeds.get_opt(&name).await;
        let found = found.context(format_args!("could not read Seed {name}, which had the shoot"))?;
        formers.push((name, found));
    }
    joined(usual, own, shoot, &formers)
}

fn joined(
    usual: Terms,
    own: &SeedObject,
    shoot: &Shoot,
    formers: &[(String, Option<SeedObject>)],
) -> Result<Terms> {
    let present = || formers.iter().filter_map(|(_, seed)| seed.as_ref());
    let settings: Result<Vec<_>> = present().map(|seed| settings_of(usual, seed)).collect();
    let fences = present().filter_map(told);
    let recorded = formers.iter().filter_map(|(name, _)| recorded_fence(shoot, name));
    Ok(own_terms(usual, own)?
        .waiting_for_settings(settings?)
        .waiting_for(fences.chain(recorded)))
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

/// The longest that its gardenlet has said the Seed gives while it had shoots. What was written into the Seed
/// of a seed that is dead since, none of its processes has heard.
fn told(seed: &SeedObject) -> Option<Duration> {
    let seconds = seed.status.as_ref()?.owner_check_fence_seconds?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// The fence that the gardenlet of a seed has recorded in the Shoot. It counts also when the Seed was
/// deleted.
fn recorded_fence(shoot: &Shoot, seed: &str) -> Option<Duration> {
    let seconds = shoot.status.as_ref()?.owner_check_in(seed)?.fence_seconds?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// The settings by which processes of this Seed act. They count also where the Seed does not check owners any
/// more: a process may not have heard of that.
fn settings_of(usual: Terms, seed: &SeedObject) -> Result<Settings> {
    let Some(checks) = seed.spec.owner_checks() else {
        return Ok(*usual.settings());
    };
    owner_checks::settings(checks, usual).map_err(|why| {
        configuration_problem(format!(
            "how long seed {}, which had the shoot, has to be waited for cannot be read: {why}",
            seed.name_any()
        ))
    })
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
