//! Refusals of operations, and their reports: the shoot belongs to a different seed, or the ownership of this
//! seed is not confirmed.
//!
//! - The Cluster names a different seed, or is missing: the last operation reports the reason.
//! - The owner record names a different seed or no seed (lost): the object stays unchanged. A single Event
//!   and a metric report the loss.
//! - The object was written in a different epoch: the last operation and a metric report the reason.
//! - The ownership is not confirmed: the last operation and a metric report the reason.
//! - A forced deletion without a known owner: the object is released, and no outside resource is touched. An
//!   Event reports the resources that may be left.
//!
//! This seed may not write an object of a lost shoot any more. A changed last operation would be the first
//! act of a stale request (R17-03).

use api::extensions::{Cluster as ClusterObject, ExtensionObject};
use kube::{Api, ResourceExt};
use mutation::Mutation;
use owner_checks::{OWNERSHIP_LOST, OwnershipError, OwnershipRight, Patience};
use runtime::{
    Error, Result, clock,
    controller::{Next, finalizer},
};
use tracing::warn;

use crate::{
    Actuator, ExtensionReconciler, Operation, Released, Role, forced, kind, owner::written_in, status,
};

impl<K, A> ExtensionReconciler<K, A>
where
    K: ExtensionObject,
    A: Actuator<K>,
{
    /// Refuses an operation that the role does not allow. The status reports the reason, without a failure. A
    /// forced deletion without a Cluster releases the object, because no seed would ever reconcile the
    /// object.
    pub(crate) async fn refuse(
        &self,
        api: &Api<K>,
        object: &K,
        operation: Operation,
        role: &Role,
    ) -> Result<Next> {
        let why = role.to_string();
        if operation == Operation::ForceDelete && *role == Role::Unknown {
            return self.let_go(api, object, &why).await;
        }
        let waiting = status::waiting(object, operation, &why, clock::now());
        self.provider
            .manager
            .merge_status(api, &object.name_any(), &waiting)
            .await?;
        Err(Error::not_owner(why))
    }

    /// The permit of the shoot's owner, if the operation needs the permit.
    pub(crate) async fn right_of(
        &self,
        object: &K,
        operation: Operation,
        cluster: Option<&ClusterObject>,
    ) -> Result<Option<OwnershipRight>, OwnershipError> {
        if Mutation::OwnerNotConfirmed.is_active() {
            return Ok(None);
        }
        let owners = &self.provider.owners;
        let wanted = owners.wanted(object, operation, cluster);
        let Some(wanted) = wanted.map_err(OwnershipError::Impossible)? else {
            return Ok(None);
        };
        let epoch = wanted.epoch;
        let namespace = object.namespace().unwrap_or_default();
        let patience = match operation {
            Operation::ForceDelete => Patience::Decision(forced::PATIENCE),
            _ => Patience::FirstAnswer,
        };
        let confirmed = owners.confirm(&self.provider.seed, &namespace, wanted, patience);
        let right = Box::pin(confirmed).await?;
        // Checked after the confirmation: this seed may not write an object of a lost shoot.
        written_in(object, operation, epoch).map_err(OwnershipError::OtherEpoch)?;
        Ok(Some(right))
    }

    /// Refuses an operation without a confirmed owner.
    pub(crate) async fn refuse_unowned(
        &self,
        api: &Api<K>,
        object: &K,
        operation: Operation,
        refusal: OwnershipError,
    ) -> Result<Next> {
        self.provider.owners.count::<K>(&refusal);
        if let OwnershipError::Lost(why) = &refusal {
            self.tell_of_loss(object, why).await;
            return Err(refusal.into());
        }
        let error = Error::from(refusal);
        if operation == Operation::ForceDelete {
            return self.let_go(api, object, &error.to_string()).await;
        }
        self.fail(api, object, operation, &error).await;
        Err(error)
    }

    /// Once per object: the object is reconciled again and again, because a new epoch may begin.
    async fn tell_of_loss(&self, object: &K, why: &str) {
        let namespace = object.namespace().unwrap_or_default();
        let name = format!("{} {}", kind::name::<K>(), object.name_any());
        if self.provider.owners.is_first_report(&namespace, name) {
            warn!(why, "the shoot is lost");
            self.events.warning(object, OWNERSHIP_LOST, why).await;
        }
    }

    async fn let_go(&self, api: &Api<K>, object: &K, why: &str) -> Result<Next> {
        let what = format!(
            "what {} {} stands for may be left behind: {why}",
            kind::name::<K>(),
            object.name_any()
        );
        let released = Released {
            left_behind: vec![what],
        };
        self.tell(object, &released).await;
        finalizer::remove(api, object, &kind::finalizer_of(object)).await?;
        Ok(Next::Change)
    }
}
