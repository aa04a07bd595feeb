//! An operation of the protocol, from the call of the actuator to the result in the object: steps 4 to 7 of
//! [`crate::reconciler`].
//!
//! The call is dropped when this seed does not act on the shoot any more (RX-41, R17-60), and at the timeout
//! ([`crate::reconciler::WITHIN`]). A success that cannot be written is a failure.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use api::{
    extensions::{Cluster as ClusterObject, ExtensionObject},
    meta::ErrorCode,
};
use futures::future::{Either, select};
use kube::{Api, ResourceExt};
use mutation::Mutation;
use owner_checks::OwnershipRight;
use permit::{Clock, Issuer};
use runtime::{Error, ErrorMessage, Result, clock, controller::Next};
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use crate::{
    Actuator, Context, ExtensionReconciler, Operation, Outcome, Released, Role, kind,
    reconciler::LEFT_BEHIND, role, status,
};

/// Maximum bytes of a status. Above this size an API server may refuse an object: etcd's default limit is 1.5
/// MiB for the whole object.
const MOST_BYTES: usize = 1024 * 1024;

/// Interval of role checks during an operation. Shorter than every wait of a move, much longer than an answer
/// takes.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// A role does not expire: longer than any process lives.
const LASTS: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

impl<K, A> ExtensionReconciler<K, A>
where
    K: ExtensionObject,
    A: Actuator<K>,
{
    /// Steps 4 to 7.
    pub(crate) async fn work(
        &self,
        api: &Api<K>,
        object: K,
        operation: Operation,
        cluster: Option<ClusterObject>,
        right: Option<&OwnershipRight>,
    ) -> Result<Next> {
        let object = Arc::new(object);
        // Valid while the role lasts and this seed owns the shoot, and no longer than the lock.
        let clock = Clock::default();
        let until = clock.now() + LASTS;
        let issuer = Issuer::new(role::name_of(object.as_ref()), clock, until);
        let owner = right.map_or_else(|| issuer.permit(), |right| issuer.permit().and(&right.permit));
        let context = Context {
            seed: if operation.acts_outside() && !Mutation::PermitIgnored.is_active() {
                self.provider.seed.under(&owner)
            } else {
                self.provider.seed.clone()
            },
            manager: self.provider.manager,
            object: Arc::clone(&object),
            cluster,
        };
        info!(?operation, "begins");
        let epoch = right.map(OwnershipRight::epoch);
        let done = match self.guarded(&context, operation, (&issuer, epoch)).await {
            Ok(outcome) => self.succeed(api, object.as_ref(), operation, &outcome).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(fresh) => {
                self.end(api, &object, fresh, operation).await?;
                info!(?operation, "succeeded");
                Ok(Next::Change)
            }
            Err(error) => {
                if let Some(refusal) = right.and_then(OwnershipRight::ended) {
                    return self.refuse_unowned(api, &object, operation, refusal).await;
                }
                self.fail(api, object.as_ref(), operation, &error).await;
                Err(error)
            }
        }
    }

    /// Step 5. A status that cannot be written is reported with the size; the former state stays.
    async fn succeed(&self, api: &Api<K>, object: &K, operation: Operation, outcome: &Outcome) -> Result<K> {
        let what = format!("{} {}", kind::name::<K>(), object.name_any());
        let state = outcome.state.as_ref().map(|state| &state.0);
        if state.is_some_and(|state| !state.is_object() && !state.is_null()) {
            return Err(Error::bug(format!(
                "the state that the actuator {} gave for {what} is no object; the former state is kept",
                A::NAME
            )));
        }
        let done = status::succeeded(object, operation, outcome, clock::now());
        let bytes = done.to_string().len();
        let written = self
            .provider
            .manager
            .merge_status(api, &object.name_any(), &done)
            .await;
        written.map_err(|error| match error {
            error @ Error::NotOwner(_) => error,
            error if bytes > MOST_BYTES => {
                let message = format!(
                    "{what} has a status of {bytes} bytes, which is more than an API server takes ({error}); the \
                     former state is kept: the provider has to keep less in it"
                );
                Error::config(
                    ErrorCode::ErrConfigurationProblem,
                    ErrorMessage::with_source(message, error),
                )
            }
            error => error,
        })
    }

    /// A failed write of the status is only logged, because the original error matters more.
    pub(crate) async fn fail(&self, api: &Api<K>, object: &K, operation: Operation, error: &Error) {
        let now = clock::now();
        let patch = match error {
            Error::NotReady { why, .. } | Error::NotOwner(why) => {
                status::waiting(object, operation, why, now)
            }
            error => status::failed(object, operation, error, now),
        };
        let written = self
            .provider
            .manager
            .merge_status(api, &object.name_any(), &patch)
            .await;
        if let Err(unwritten) = written {
            debug!(
                error = format_args!("{unwritten:#}"),
                "the failure could not be written into the status"
            );
        }
    }

    /// RX-41 and RX-42: drops the work when this seed does not act on the shoot any more. The work spawns no
    /// task, so the drop stops all work; a request that waits in a client is refused there.
    async fn guarded(
        &self,
        context: &Context<K>,
        operation: Operation,
        right: (&Issuer, Option<i64>),
    ) -> Result<Outcome> {
        let work = context.permit().guard(self.bounded(context, operation));
        let looking = self.look_after(context.object.as_ref(), operation, right);
        let (work, looking) = (pin!(work), pin!(looking));
        match select(work, looking).await {
            Either::Left((done, _)) => done?,
            Either::Right((never, _)) => match never {},
        }
    }

    /// Checks the role periodically, and ends the permit of the work when a different seed acts, or when a
    /// different epoch has to be confirmed. A missing answer changes nothing.
    async fn look_after(
        &self,
        object: &K,
        operation: Operation,
        (issuer, epoch): (&Issuer, Option<i64>),
    ) -> Infallible {
        loop {
            sleep(ASK_EVERY).await;
            match self.cluster_of(object).await {
                Ok(cluster) => {
                    let role = Role::for_object(object, cluster.as_ref());
                    if !role.allows(operation) {
                        issuer.end(&role.to_string());
                    }
                    let wanted = self.provider.owners.wanted(object, operation, cluster.as_ref());
                    if let Ok(Some(wanted)) = wanted
                        && epoch != Some(wanted.epoch)
                    {
                        issuer.end(&format!(
                            "its owner has to be confirmed in epoch {}",
                            wanted.epoch
                        ));
                    }
                }
                Err(error) => debug!(error = format_args!("{error:#}"), "it is not known who acts"),
            }
        }
    }

    /// The gardenlet waits for the object, so the object has to report an outside system that does not
    /// answer.
    async fn bounded(&self, context: &Context<K>, operation: Operation) -> Result<Outcome> {
        let done = timeout(self.within, self.act(context, operation)).await;
        done.unwrap_or_else(|_| {
            Err(Error::transient(format!(
                "{operation:?} of {} {} did not end within {:?}: something that the actuator {} asks does not answer; \
                 it was stopped and is tried again",
                kind::name::<K>(),
                context.name(),
                self.within,
                A::NAME
            )))
        })
    }

    async fn act(&self, context: &Context<K>, operation: Operation) -> Result<Outcome> {
        match operation {
            Operation::Create | Operation::Reconcile => self.actuator.reconcile(context).await,
            Operation::Restore => self.actuator.restore(context).await,
            Operation::Migrate => self.actuator.migrate(context).await,
            Operation::Delete => self.actuator.delete(context).await.map(|()| Outcome::none()),
            Operation::ForceDelete => {
                let released = self.actuator.force_delete(context).await?;
                self.tell(context.object.as_ref(), &released).await;
                Ok(Outcome::none())
            }
        }
    }

    /// Resources left behind cost money or block names until a person removes the resources.
    pub(crate) async fn tell(&self, object: &K, released: &Released) {
        for what in &released.left_behind {
            warn!(what, "left behind by a forced deletion");
        }
        self.events
            .warnings(object, LEFT_BEHIND, &released.left_behind)
            .await;
    }
}
