//! The end of an unopened claim: the seed got the shoot, and lost the shoot before phase `Opening`. The last
//! opened data are in a different seed, so that no seed needs any object of this claim
//! (docs/understand/ownership.md, "A claim that opened nothing").
//!
//! The seed removes the namespace without the wait for the restore of the present seed, which may be dead.
//! The removal needs two proofs that agree: the Shoot in the garden, and the owner record in DNS. Both are
//! read directly before the removal. Alone, a garden that was restored from an old backup could name a
//! former owner, while this seed has the shoot again. The owner record then shows a later epoch.

use api::{
    constants::PROJECT_NAME,
    gardencore::{Seed, Shoot},
};
use kube::ResourceExt;
use ownership::SeedEpoch;
use parts::{OwnerRecord, Residency};
use placement::{Role, ownership_status, role};
use runtime::{Result, client::Cluster as _, error::Explain};

use crate::context::Context;

/// Whether the residency of the seed in this epoch has opened no data, and the last opened data are in a
/// different seed.
pub(crate) fn opened_nothing(shoot: &Shoot, seed: &str, epoch: i64) -> bool {
    let residency = SeedEpoch {
        seed: seed.to_owned(),
        epoch,
    };
    ownership_status::ownership(shoot).is_ok_and(|now| now.opened_nothing_in(&residency))
}

/// Whether the newest Shoot in the garden and the owner record in DNS prove that a different seed has the
/// shoot in a later epoch. The owner record must show exactly the epoch of the garden. Without a namespace in
/// the seed no object is left to remove, and the garden is enough.
pub(crate) async fn is_proven(
    context: &Context,
    residency: &Residency,
    shoot: &Shoot,
    epoch: i64,
) -> Result<bool> {
    let seed = &context.seed_name;
    let shoots = context.garden.namespaced::<Shoot>(&residency.tenant.namespace);
    let newest = shoots.get_opt(&residency.tenant.name).await;
    let Some(newest) = newest.context("could not read the Shoot")? else {
        return Ok(false);
    };
    let is_same = newest.uid() == shoot.uid() && role(&newest, seed) == Role::Former { epoch };
    if !is_same || !opened_nothing(&newest, seed, epoch) {
        return Ok(false);
    }
    let Some(namespace) = residency.read_namespace().await? else {
        return Ok(true);
    };
    if namespace.metadata.deletion_timestamp.is_some() {
        // The removal has begun, and does not end before all objects are gone.
        return Ok(true);
    }
    let Some(project) = namespace.labels().get(PROJECT_NAME) else {
        return Ok(false);
    };
    let seeds = context.garden.cluster_wide::<Seed>();
    let found = seeds.get_opt(seed).await;
    let Some(own) = found.context(format_args!("could not read Seed {seed}"))? else {
        return Ok(false);
    };
    let claim = OwnerRecord::claim_of_former(&own, &newest, project, residency.settings.owner_check)?;
    let Some(claim) = claim else {
        return Ok(false);
    };
    match claim.check_owned_elsewhere().await {
        Ok(()) => Ok(true),
        Err(error) => {
            let name = newest.name_any();
            tracing::info!(
                shoot = name,
                epoch,
                error = format_args!("{error:#}"),
                "the claim opened nothing, and is kept without proof"
            );
            Ok(false)
        }
    }
}

#[cfg(test)]
#[path = "unopened_tests.rs"]
mod tests;
