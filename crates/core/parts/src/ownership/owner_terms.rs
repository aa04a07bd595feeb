//! Intervals and bounds of owner checks, and the fence: the time that a destination waits for former owners.

use std::{collections::BTreeSet, time::Duration};

use api::gardencore::{Seed as SeedObject, Shoot};
use kube::ResourceExt;
use ownership::{Phase, Settings, Terms};
use placement::ownership_status;
use runtime::{
    Result,
    client::{Cluster, Garden},
    error::Explain,
};

use crate::configuration_problem;

/// The terms of this seed. While the seed claims the shoot, the fence covers the settings of all former
/// owners joined with the seed's own settings. The fence is no shorter than any recorded fence. An edit of
/// the Seed changes these terms first: the processes get the new settings with the next reconciliation of
/// each shoot. Former owners that an operator has stated to be off have no process to wait for.
pub(crate) async fn read_terms(
    garden: &Garden,
    usual: Terms,
    own: &SeedObject,
    shoot: &Shoot,
) -> Result<Terms> {
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
    let running = || {
        let status = shoot.status.as_ref();
        let is_off = move |name: &str| status.is_some_and(|status| status.is_stated_off(name));
        formers.iter().filter(move |(name, _)| !is_off(name))
    };
    let present = || running().filter_map(|(_, seed)| seed.as_ref());
    let settings: Result<Vec<_>> = present().map(|seed| settings_of(usual, seed)).collect();
    let fences = present().filter_map(read_reported_fence);
    let recorded = running().filter_map(|(name, _)| recorded_fence(shoot, name));
    Ok(own_terms(usual, own)?
        .waiting_for_settings(settings?)
        .waiting_for(fences.chain(recorded)))
}

/// Never shorter than the default: an etcd may still run with settings from before the Seed set smaller
/// values.
fn own_terms(usual: Terms, own: &SeedObject) -> Result<Terms> {
    let checks = own.spec.owner_checks().filter(|checks| checks.enabled);
    let terms = checks.map_or(Ok(usual), |checks| owner_checks::terms(checks, usual));
    let least = [Some(usual.settings().fence), read_reported_fence(own)];
    Ok(terms
        .map_err(configuration_problem)?
        .waiting_for(least.into_iter().flatten()))
}

/// The longest fence that the Seed's gardenlet has reported while the seed had shoots. Processes of a dead
/// seed have not received later edits of the Seed.
fn read_reported_fence(seed: &SeedObject) -> Option<Duration> {
    let seconds = seed.status.as_ref()?.owner_check_fence_seconds?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// The fence that the gardenlet of a seed has recorded in the Shoot. Also valid after the deletion of the
/// Seed.
fn recorded_fence(shoot: &Shoot, seed: &str) -> Option<Duration> {
    let seconds = shoot.status.as_ref()?.owner_check_in(seed)?.fence_seconds?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

/// The settings of the processes of this Seed. Also valid after the Seed switches owner checks off, because a
/// process may not have received the change.
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

/// The seeds with possible leftover processes, while this seed claims the shoot.
pub(crate) fn others(shoot: &Shoot, own: &str) -> BTreeSet<String> {
    let claims = ownership_status::ownership(shoot)
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
