//! The fence of a shoot that is taken over without the source: the destination waits until every permit of
//! the source has expired. The fence begins when every witness shows the destination
//! (docs/understand/ownership.md, "Time").

use std::sync::Arc;

use api::constants::OWNERSHIP_EPOCH;
use futures::future::{BoxFuture, FutureExt};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use mutation::Mutation;
use ownership::{Network, OwnershipClaim, SecondWitness, Testimony, Witnesses, shown_by_all};
use placement::ownership_status;
use runtime::{Error, Result, client::Cluster, error::Explain};

use crate::{
    ClaimPlan, Facts, configuration_problem,
    ownership::{fence_clock::FenceClock, fence_servers::FenceServers, owner_claim},
    secrets::config::{BACKUP_SECRET, SOURCE_SECRET},
    task::{NONE, PartTask},
};

/// The fence, as tasks of a flow. The tasks write no object, and exchange the start of the fence.
#[derive(Debug)]
pub struct Fence;

impl Fence {
    /// [`Self::begin`], as a task.
    pub const BEGIN: PartTask<Facts, FenceClock> = PartTask::exchanging(
        "Waiting until every witness shows that the seed has the shoot",
        NONE,
        |input, fence| Box::pin(Self::begin(input, fence)),
    );
    /// [`Self::pass`], as a task.
    pub const PASS: PartTask<Facts, FenceClock> = PartTask::exchanging(
        "Waiting until the former seed cannot act any more",
        NONE,
        |input, fence| Box::pin(Self::pass(input, fence)),
    );

    /// "Waiting until every witness shows that the seed has the shoot": checks all witnesses a single time,
    /// and records the start of the fence. Must come after the owner record and after the claim in the
    /// source's bucket.
    pub async fn begin(f: &Facts, fence: &FenceClock) -> Result<()> {
        let claim = claim(f)?;
        let (_, dns) = owner_claim::name(&f.seed_object, &f.names)?;
        let servers = FenceServers::read(f).await?;
        let authorities = servers.authorities(dns.zone_name())?;
        authorities
            .check(&claim)
            .map_err(|error| configuration_problem(error.to_string()))?;
        let witnesses = Witnesses {
            authorities: Arc::new(authorities),
            wire: Arc::new(Network),
            second: Arc::new(BucketWitness(bucket(f).await?)),
        };
        let shown = shown_by_all(&claim, &f.owner_check, &witnesses).await;
        shown.map_err(|why| {
            let foreign = servers.describe_foreign(&f.seed_object.name_any());
            Error::transient(format!("the former seed is not fenced yet: {why}{foreign}"))
        })?;
        fence.begin(servers.addresses());
        Ok(())
    }

    /// "Waiting until the former seed cannot act any more": waits until the fence has passed.
    pub async fn pass(f: &Facts, fence: &FenceClock) -> Result<()> {
        fence.pass(&f.owner_check).await
    }
}

/// The answer of the second witness. An answer in favour of the destination is final.
struct BucketWitness(Testimony);

impl SecondWitness for BucketWitness {
    fn ask(&self) -> BoxFuture<'_, Testimony> {
        let said = self.0.clone();
        async { said }.boxed()
    }
}

/// The answer of the source's bucket to the processes of the source. The provider claims the bucket first,
/// and then records the claim in the Secret.
async fn bucket(f: &Facts) -> Result<Testimony> {
    let name = if ClaimPlan::from_shoot(&f.shoot).returns() {
        BACKUP_SECRET
    } else {
        SOURCE_SECRET
    };
    let secrets = f.residency.seed.namespaced::<Secret>(&f.residency.namespace);
    let secret = secrets
        .get_opt(name)
        .await
        .context(format_args!("could not read Secret {name}"))?;
    let chosen = ownership_status::ownership(&f.shoot).is_ok_and(|recorded| recorded.chain.is_some());
    Ok(testimony(name, secret.as_ref(), chosen, f.epoch()))
}

/// `chosen`: the data of this epoch were chosen, so this fence has already passed.
fn testimony(name: &str, secret: Option<&Secret>, chosen: bool, epoch: i64) -> Testimony {
    let claimed = secret.and_then(|secret| secret.annotations().get(OWNERSHIP_EPOCH)?.parse().ok());
    if chosen || claimed == Some(epoch) || Mutation::FenceBeforeClaim.is_active() {
        return Testimony::Claimed { epoch };
    }
    Testimony::Silent(format!(
        "the provider has not claimed the place of the shoot's backups (Secret {name}) for epoch {epoch}"
    ))
}

fn claim(f: &Facts) -> Result<OwnershipClaim> {
    let (name, _) = owner_claim::name(&f.seed_object, &f.names)?;
    OwnershipClaim::new(&name, &owner_claim::identity(&f.seed_object)?, f.epoch())
        .map_err(|error| configuration_problem(error.to_string()))
}

#[cfg(test)]
#[path = "fence_tests.rs"]
mod tests;
