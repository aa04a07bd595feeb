//! The right by which objects of a shoot are changed: that of its owner, beside the one of the lock
//! (R17-60..62; docs/understand/ownership.md).
//!
//! A former seed of a shoot may still reach its API server, wherever that runs by now. Whatever goes into the
//! seed itself needs the lock alone: what a seed has, it cleans up itself.
//!
//! | | the ManagedResource | besides |
//! |---|---|---|
//! | the owner record names another one, or nobody: lost | stays as it is, to the last byte | an Event, once |
//! | nobody confirms that it is this seed's | ResourcesApplied is Unknown | |
//! | it is deleted, and its objects may not be | waits for the right, for `keepObjects`, or goes with its namespace | |

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

/// Reason of the condition where nobody confirms whose the shoot is.
pub const UNCONFIRMED: &str = "OwnershipUnconfirmed";

impl Controller {
    /// Does `work`, with a share of what may be worked on at a time, and with the cluster by which everything
    /// leaves under the right that is needed. It is dropped when that ends.
    ///
    /// The share is taken when the right is there: whoever waits for an answer, as of a seed that is cut off,
    /// holds up no other shoot.
    ///
    /// # Errors
    /// The right was not to be had, or has ended.
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

    /// The right of the shoot's owner; none where none is needed.
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

    /// What the gardenlet says of the shoot in this namespace. It is written before anything else is, and
    /// goes last.
    async fn cluster(&self, namespace: &str) -> Result<Option<ClusterObject>> {
        let found = self.seed.cluster_wide::<ClusterObject>().get_opt(namespace).await;
        found.context(format_args!("could not read Cluster {namespace}"))
    }

    /// What nobody confirms to be this seed's is left as it is.
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

    /// The same of one that is being deleted.
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
