//! The right to change objects of a shoot: the right of the shoot's owner, in addition to the lock
//! (R17-60..62; docs/understand/ownership.md).
//!
//! A former seed of a shoot may still reach the shoot's API server, wherever the API server runs by now.
//! Objects in the seed need only the lock: each seed cleans up the seed's own objects.
//!
//! | case | the ManagedResource | Event |
//! |---|---|---|
//! | lost: the owner record names another seed, or no seed | stays unchanged, to the last byte | once |
//! | no witness confirms this seed | ResourcesApplied is Unknown | |
//! | deleted, objects may not be deleted | waits for the right or `keepObjects`, or ends with namespace | |
//! | the shoot has left the namespace | stays unchanged; deleted: ends, objects stay | if deleted |

use std::{future::Future, sync::Arc};

use api::{
    constants::LEFT_IN_EPOCH, extensions::Cluster as ClusterObject, meta::ConditionStatus,
    resources::ManagedResource,
};
use kube::ResourceExt as _;
use owner_checks::{OWNERSHIP_LOST, OwnershipError, OwnershipRight, Patience};
use runtime::{Error, Result, client::Cluster, controller::Next, error::Explain};
use tracing::warn;

use super::Controller;
use crate::{
    object::Owner,
    status::{Report, Verdict},
    target::Target,
};

/// Reason of the condition where no witness confirms this seed as the owner.
pub const UNCONFIRMED: &str = "OwnershipUnconfirmed";

impl Controller {
    /// Runs `work` with a share of the concurrent work, and with the target under the required right. The
    /// work is dropped when the right ends.
    ///
    /// The share is taken after the right: an unanswered owner check, as in a seed that is cut off, blocks no
    /// other shoot.
    ///
    /// # Errors
    /// The right was refused, or has ended.
    pub(super) async fn owned<T, F>(
        &self,
        owner: &Owner,
        target: &Arc<Target>,
        work: impl FnOnce(Arc<Target>) -> F,
    ) -> Result<T, OwnershipError>
    where
        F: Future<Output = T>,
    {
        let Some(tenure) = self.tenure(owner).await? else {
            let _share = self.work.acquire().await;
            return Ok(work(Arc::clone(target)).await);
        };
        let target = target.under(&tenure.permit);
        let work = async {
            let _share = self.work.acquire().await;
            work(target).await
        };
        let done = tenure.beside(tenure.permit.guard(work)).await;
        done.map_err(|ended| {
            let why = || OwnershipError::Unconfirmed(ended.to_string());
            tenure.ended().unwrap_or_else(why)
        })
    }

    /// The right of the shoot's owner; `None` where no such right is needed.
    async fn tenure(&self, owner: &Owner) -> Result<Option<OwnershipRight>, OwnershipError> {
        if owner.in_seed {
            return Ok(None);
        }
        let cluster = self
            .cluster(&owner.namespace)
            .await
            .map_err(OwnershipError::Impossible)?;
        let wanted = self.owners.wanted(cluster.as_ref());
        let Some(wanted) = wanted.map_err(OwnershipError::Impossible)? else {
            return Ok(None);
        };
        let confirmed = self
            .owners
            .confirm(&self.seed, &owner.namespace, wanted, Patience::FirstAnswer);
        Box::pin(confirmed).await.map(Some)
    }

    /// Whether the shoot of these objects has left the namespace for another seed: the namespace has the
    /// gardenlet's mark, and the Shoot in the Cluster names another seed. A mark alone may be from an earlier
    /// residency of the shoot. The answer needs no owner checks.
    pub(super) async fn shoot_has_left(&self, owner: &Owner) -> Result<bool> {
        if owner.in_seed {
            return Ok(false);
        }
        let namespace = self.namespace(&owner.namespace).await?;
        if !namespace.is_some_and(|namespace| namespace.annotations().contains_key(LEFT_IN_EPOCH)) {
            return Ok(false);
        }
        // The gardenlet deletes the Cluster of a departed shoot before the namespace.
        let cluster = self.cluster(&owner.namespace).await?;
        Ok(cluster.is_none_or(|cluster| !names_this_seed(&cluster)))
    }

    /// The Cluster of this namespace. The gardenlet writes the Cluster before all other objects, and deletes
    /// the Cluster last.
    async fn cluster(&self, namespace: &str) -> Result<Option<ClusterObject>> {
        let found = self.seed.cluster_wide::<ClusterObject>().get_opt(namespace).await;
        found.context(format_args!("could not read Cluster {namespace}"))
    }

    /// Leaves a ManagedResource unchanged if no witness confirms this seed.
    pub(super) async fn refuse(
        &self,
        owner: &Owner,
        resource: &ManagedResource,
        refusal: OwnershipError,
    ) -> Result<Next> {
        if let OwnershipError::Lost(why) = &refusal {
            self.tell_of_loss(owner, resource, why).await;
            return Err(refusal.into());
        }
        let error = Error::from(refusal);
        let applied = Some(Verdict::new(
            ConditionStatus::Unknown,
            UNCONFIRMED,
            error.to_string(),
        ));
        let report = Report {
            applied,
            ..Report::default()
        };
        self.report(resource, owner, report).await?;
        Err(error)
    }

    /// The same for a ManagedResource that is being deleted.
    pub(super) async fn refuse_deletion(
        &self,
        owner: &Owner,
        resource: &ManagedResource,
        refusal: OwnershipError,
    ) -> Result<Next> {
        if let OwnershipError::Lost(why) = &refusal
            && !self.namespace_goes(&owner.namespace).await?
        {
            self.tell_of_loss(owner, resource, why).await;
            return Err(refusal.into());
        }
        let is_possible = !matches!(refusal, OwnershipError::Impossible(_));
        let error = Error::from(refusal);
        let after = match &error {
            Error::NotReady { after, .. } if is_possible => *after,
            _ => super::HELD_REQUEUE,
        };
        self.unreachable(owner, resource, &error.to_string(), after).await
    }

    async fn tell_of_loss(&self, owner: &Owner, resource: &ManagedResource, why: &str) {
        if self.owners.is_first_report(&owner.namespace, owner.name.clone()) {
            warn!(why, "the shoot is lost");
            self.events.warning(resource, OWNERSHIP_LOST, why).await;
        }
    }
}

/// Whether the Shoot in the Cluster runs in the seed of the Cluster.
fn names_this_seed(cluster: &ClusterObject) -> bool {
    let seed = cluster.spec.seed.as_ref().map(|seed| &seed.0["metadata"]["name"]);
    seed == Some(&cluster.spec.shoot.0["status"]["seedName"])
}
