//! What may not be done, and how that is told: it belongs to another seed, or nobody confirms that it belongs
//! to this one.
//!
//! | | the object | besides |
//! |---|---|---|
//! | the Cluster names another seed, or there is none | its last operation says so | |
//! | the owner record names another one, or nobody: lost | stays as it is, to the last byte | an Event, once; a metric |
//! | the object was written in another epoch than the shoot is in | its last operation says so | a metric |
//! | nobody confirms that it is this seed's | its last operation says so | a metric |
//! | a forced deletion, and nobody can say whose it is | is let go of, nothing outside is touched | an Event that tells what may be left |
//!
//! An object of a lost shoot is not this seed's to write any more: that its last operation is told as
//! something else would be the first thing that a stale request does (R17-03).

use api::extensions::{Cluster as ClusterObject, ExtensionObject};
use kube::{Api, ResourceExt};
use mutation::Mutation;
use owner_checks::{OWNERSHIP_LOST, Patience, Refusal, Tenure};
use runtime::{Error, Next, Result, clock, finalizer};
use tracing::warn;

use crate::{
    Actuator, ExtensionReconciler, Operation, Released, Role, forced, kind, owner::written_in, status,
};

impl<K, A> ExtensionReconciler<K, A>
where
    K: ExtensionObject,
    A: Actuator<K>,
{
    /// What the role does not allow. The status says why, and that nothing failed. A forced deletion for
    /// which there is no Cluster any more lets go, as nobody else would ever look after the object.
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
        Err(Error::NotOwner(why))
    }

    /// The right of the shoot's owner, where one is needed.
    pub(crate) async fn right_of(
        &self,
        object: &K,
        operation: Operation,
        cluster: Option<&ClusterObject>,
    ) -> Result<Option<Tenure>, Refusal> {
        if Mutation::OwnerNotConfirmed.is_active() {
            return Ok(None);
        }
        let owners = &self.provider.owners;
        let wanted = owners.wanted(object, operation, cluster);
        let Some(wanted) = wanted.map_err(Refusal::Impossible)? else {
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
        // Not before: an object of a lost shoot is not this seed's to write.
        written_in(object, operation, epoch).map_err(Refusal::OtherEpoch)?;
        Ok(Some(right))
    }

    /// What nobody confirms to be this seed's.
    pub(crate) async fn refuse_unowned(
        &self,
        api: &Api<K>,
        object: &K,
        operation: Operation,
        refusal: Refusal,
    ) -> Result<Next> {
        self.provider.owners.count::<K>(&refusal);
        if let Refusal::Lost(why) = &refusal {
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

    /// Once for each object: it is looked at again and again, as a new epoch may come.
    async fn tell_of_loss(&self, object: &K, why: &str) {
        let namespace = object.namespace().unwrap_or_default();
        let name = format!("{} {}", kind::name::<K>(), object.name_any());
        if self.provider.owners.is_news(&namespace, name) {
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
