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
//! | deleted, the shoot has left the namespace | ends, and the objects stay (deletion.rs) | once |

use std::{future::Future, sync::Arc};

use api::{extensions::Cluster as ClusterObject, meta::ConditionStatus, resources::ManagedResource};
use owner_checks::{OWNERSHIP_LOST, Patience, Refusal, Tenure};
use runtime::{Cluster, Error, Next, Result, error::Explain};
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
    ) -> Result<T, Refusal>
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
            let why = || Refusal::Unconfirmed(ended.to_string());
            tenure.ended().unwrap_or_else(why)
        })
    }

    /// The right of the shoot's owner; `None` where no such right is needed.
    async fn tenure(&self, owner: &Owner) -> Result<Option<Tenure>, Refusal> {
        if owner.in_seed {
            return Ok(None);
        }
        let cluster = self
            .cluster(&owner.namespace)
            .await
            .map_err(Refusal::Impossible)?;
        let wanted = self.owners.wanted(cluster.as_ref());
        let Some(wanted) = wanted.map_err(Refusal::Impossible)? else {
            return Ok(None);
        };
        let confirmed = self
            .owners
            .confirm(&self.seed, &owner.namespace, wanted, Patience::FirstAnswer);
        Box::pin(confirmed).await.map(Some)
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
        refusal: Refusal,
    ) -> Result<Next> {
        if let Refusal::Lost(why) = &refusal {
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
        refusal: Refusal,
    ) -> Result<Next> {
        if let Refusal::Lost(why) = &refusal
            && !self.namespace_goes(&owner.namespace).await?
        {
            self.tell_of_loss(owner, resource, why).await;
            return Err(refusal.into());
        }
        let is_possible = !matches!(refusal, Refusal::Impossible(_));
        let error = Error::from(refusal);
        let after = match &error {
            Error::NotReady { after, .. } if is_possible => *after,
            _ => super::DELETION_AGAIN,
        };
        self.unreachable(owner, resource, &error.to_string(), after).await
    }

    async fn tell_of_loss(&self, owner: &Owner, resource: &ManagedResource, why: &str) {
        if self.owners.is_news(&owner.namespace, owner.name.clone()) {
            warn!(why, "the shoot is lost");
            self.events.warning(resource, OWNERSHIP_LOST, why).await;
        }
    }
}
