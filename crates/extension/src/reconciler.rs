//! ONE reconciler for every kind and every provider: it reads the object, decides ([`operation::decide`]), and lets the
//! actuator work between the writes of the protocol.
//!
//! Order of the writes, and why a crash after any of them loses nothing:
//! 1. finalizer (not for `migrate` and `delete`) — before anything exists that would have to be taken away;
//! 2. `lastOperation: Processing` — from here on the object itself says that something is unfinished;
//! 3. only for `reconcile`: the annotation goes (RX-13);
//! 4. the actuator;
//! 5. `lastOperation: Succeeded` together with state, resources and observed generation (RX-11, RX-30, RX-33);
//! 6. `delete` and `force_delete`: our finalizer goes; `migrate`: all finalizers go, so that deleting the object afterwards asks nobody (RX-10);
//! 7. `migrate` and `restore`: the annotation goes (RX-13), unless another request has been written meanwhile.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use api::{
    constants::{OPERATION, TIMESTAMP},
    extensions::{Cluster as ClusterObject, ExtensionClass, ExtensionObject},
    meta::LastOperationState,
};
use futures::future::{Either, select};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Api, Resource, ResourceExt};
use permit::{Clock, Issuer};
use runtime::{
    Cluster, Error, Events, Next, Result, Seed, apply::FieldManager, clock, error::Explain as _, finalizer,
    runner,
};
use serde_json::json;
use tokio::time::sleep;
use tracing::{debug, info, warn};

use crate::{
    Actuator, Context, Decision, Operation, Outcome, Released, Role, kind,
    operation::{self, decide, requested},
    role, status,
};

/// How soon to look again when the object was changed by someone else between two of our writes. Only long enough for
/// the other writer to finish.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How often it is asked who acts on the shoot while an operation lasts. Shorter than any of a move's waits, much longer than an
/// answer takes.
const ASK_EVERY: Duration = Duration::from_secs(2);

/// A role has no end of its own: longer than any process lives.
const LASTS: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// Reason of the Event that tells what a forced deletion has left behind.
pub const LEFT_BEHIND: &str = "LeftBehind";

/// What all reconcilers of a provider share.
#[derive(Clone, Debug)]
pub struct Provider {
    /// The seed with the objects.
    pub seed: Seed,
    /// Who writes.
    pub manager: FieldManager,
    /// `spec.type` of the provider's objects.
    pub type_: &'static str,
    /// Classes of clusters that the provider serves.
    pub classes: &'static [ExtensionClass],
}

/// Gives the Api for one object; a kind is either namespaced or not.
pub type Scope<K> = fn(&Seed, &K) -> Api<K>;

/// [`Scope`] of a namespaced kind.
#[must_use]
pub fn namespaced<K: ExtensionObject + Resource<Scope = NamespaceResourceScope>>(
    seed: &Seed,
    object: &K,
) -> Api<K> {
    seed.namespaced(object.meta().namespace.as_deref().unwrap_or_default())
}

/// [`Scope`] of a kind without namespaces.
#[must_use]
pub fn cluster_wide<K: ExtensionObject + Resource<Scope = ClusterResourceScope>>(
    seed: &Seed,
    _: &K,
) -> Api<K> {
    seed.cluster_wide()
}

/// Reconciles the objects of one kind with one actuator.
pub struct ExtensionReconciler<K, A> {
    provider: Provider,
    scope: Scope<K>,
    actuator: A,
    events: Events,
}

impl<K, A> ExtensionReconciler<K, A>
where
    K: ExtensionObject,
    A: Actuator<K>,
{
    /// A reconciler; `scope` is [`namespaced`] or [`cluster_wide`].
    pub fn new(provider: Provider, scope: Scope<K>, actuator: A) -> Self {
        let events = Events::new(provider.seed.client().clone(), provider.manager.0);
        Self {
            provider,
            scope,
            actuator,
            events,
        }
    }

    /// The seed with the objects.
    #[must_use]
    pub fn seed(&self) -> &Seed {
        &self.provider.seed
    }

    /// The Api for one object of the kind.
    #[must_use]
    pub fn api_of(&self, object: &K) -> Api<K> {
        (self.scope)(&self.provider.seed, object)
    }

    /// Brings one object one operation further. May be called at any time and for any object of ours.
    pub async fn run(&self, seen: &K) -> Result<Next> {
        let api = self.api_of(seen);
        let name = seen.name_any();
        // What woke us may be older than our own last write.
        let Some(object) = api
            .get_opt(&name)
            .await
            .context(format_args!("could not read {} {name}", K::kind(&())))?
        else {
            return Ok(Next::Change);
        };
        let cluster = self.cluster_of(&object).await?;
        let operation = match decide(&object, cluster.as_ref()) {
            Decision::Skip(why) => {
                debug!(?why, "nothing to do");
                return Ok(Next::Change);
            }
            Decision::Run(operation) => operation,
        };
        if cluster.as_ref().is_some_and(has_failed) && operation != Operation::Migrate && !operation.deletes()
        {
            info!("the shoot has failed: nothing is reconciled until it is retried");
            return Ok(Next::Change);
        }
        let role = Role::of(&object, cluster.as_ref());
        if !role.allows(operation) {
            return self.refuse(&api, &object, operation, &role).await;
        }
        match self.begin(&api, object, operation, cluster.as_ref()).await? {
            Some(object) => self.work(&api, object, operation, cluster).await,
            None => Ok(Next::After(LOOK_AGAIN)),
        }
    }

    /// What may not be done. The status says why, and that nothing failed. A forced deletion for which there is no Cluster any more
    /// lets go, as nobody else would ever look after the object.
    async fn refuse(&self, api: &Api<K>, object: &K, operation: Operation, role: &Role) -> Result<Next> {
        if operation == Operation::ForceDelete && *role == Role::Unknown {
            let what = format!(
                "what {} {} stands for may be left behind: {role}",
                kind::name::<K>(),
                object.name_any()
            );
            let released = Released {
                left_behind: vec![what],
            };
            self.tell(object, &released).await;
            finalizer::remove(api, object, &kind::finalizer::<K>()).await?;
            return Ok(Next::Change);
        }
        let why = role.to_string();
        let waiting = status::waiting(object, operation, &why, clock::now());
        self.provider
            .manager
            .merge_status(api, &object.name_any(), &waiting)
            .await?;
        Err(Error::NotOwner(why))
    }

    /// Steps 1 to 3. `None`: the object asks for something else by now, or has been written since it was read. A beginning that
    /// overwrites what came in between would tell of work that nobody does: the last write of a former process, which takes the
    /// finalizer away, may arrive that late.
    async fn begin(
        &self,
        api: &Api<K>,
        mut object: K,
        operation: Operation,
        cluster: Option<&ClusterObject>,
    ) -> Result<Option<K>> {
        if operation != Operation::Migrate && !operation.deletes() {
            let Some(kept) = finalizer::ensure(api, &object, &kind::finalizer::<K>()).await? else {
                return Ok(None);
            };
            object = kept;
        }
        let begun = status::processing(&object, operation, clock::now());
        let manager = self.provider.manager;
        let Some(object) = manager.try_merge_status_of(api, &object, &begun).await? else {
            return Ok(None);
        };
        if decide(&object, cluster) != Decision::Run(operation) {
            return Ok(None);
        }
        if matches!(operation, Operation::Create | Operation::Reconcile) && requested(&object).is_some() {
            return self.remove_request(api, &object).await.map(Some);
        }
        Ok(Some(object))
    }

    /// Steps 4 to 7.
    async fn work(
        &self,
        api: &Api<K>,
        object: K,
        operation: Operation,
        cluster: Option<ClusterObject>,
    ) -> Result<Next> {
        let object = Arc::new(object);
        // For as long as the role lasts, and no longer than the lock.
        let clock = Clock::default();
        let until = clock.now() + LASTS;
        let issuer = Issuer::new(role::name_of(object.as_ref()), clock, until);
        let context = Context {
            seed: if operation.acts_outside() {
                self.provider.seed.under(&issuer.permit())
            } else {
                self.provider.seed.clone()
            },
            manager: self.provider.manager,
            object: Arc::clone(&object),
            cluster,
        };
        info!(?operation, "begins");
        match self.guarded(&context, operation, &issuer).await {
            Ok(outcome) => {
                let done = status::succeeded(object.as_ref(), operation, &outcome, clock::now());
                let fresh: K = self
                    .provider
                    .manager
                    .merge_status(api, &object.name_any(), &done)
                    .await?;
                self.end(api, &object, fresh, operation).await?;
                info!(?operation, "succeeded");
                Ok(Next::Change)
            }
            Err(error) => {
                let now = clock::now();
                let patch = match &error {
                    Error::NotReady { why, .. } | Error::NotOwner(why) => {
                        status::waiting(object.as_ref(), operation, why, now)
                    }
                    error => status::failed(object.as_ref(), operation, error, now),
                };
                // The reason counts more than that it could not be written down.
                if let Err(unwritten) = self
                    .provider
                    .manager
                    .merge_status(api, &object.name_any(), &patch)
                    .await
                {
                    debug!(%unwritten, "the failure could not be written into the status");
                }
                Err(error)
            }
        }
    }

    /// RX-41 and RX-42: drops the work when this seed is seen not to act on the shoot any more. Nothing of the work is spawned, so
    /// that this stops it; a request that waits in a client is refused there.
    async fn guarded(&self, context: &Context<K>, operation: Operation, issuer: &Issuer) -> Result<Outcome> {
        let work = context.permit().guard(self.act(context, operation));
        let looking = self.look_after(context.object.as_ref(), operation, issuer);
        let (work, looking) = (pin!(work), pin!(looking));
        match select(work, looking).await {
            Either::Left((done, _)) => done?,
            Either::Right((never, _)) => match never {},
        }
    }

    /// Asks again and again who acts, and ends the right of the work when it is another one. No answer changes nothing.
    async fn look_after(&self, object: &K, operation: Operation, issuer: &Issuer) -> Infallible {
        loop {
            sleep(ASK_EVERY).await;
            match self.cluster_of(object).await {
                Ok(cluster) => {
                    let role = Role::of(object, cluster.as_ref());
                    if !role.allows(operation) {
                        issuer.end(&role.to_string());
                    }
                }
                Err(error) => debug!(%error, "it is not known who acts"),
            }
        }
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

    /// What is left behind costs money or stands in somebody's way until a person has removed it.
    async fn tell(&self, object: &K, released: &Released) {
        for what in &released.left_behind {
            warn!(what, "left behind by a forced deletion");
        }
        if !released.left_behind.is_empty() {
            let note = released.left_behind.join("; ");
            self.events.warning(object, LEFT_BEHIND, &note).await;
        }
    }

    /// Steps 6 and 7. `begun`: the object as it was when the actuator began; `fresh`: after the success was written.
    async fn end(&self, api: &Api<K>, begun: &K, fresh: K, operation: Operation) -> Result<()> {
        match operation {
            Operation::Create | Operation::Reconcile => Ok(()),
            Operation::Delete | Operation::ForceDelete => {
                finalizer::remove(api, &fresh, &kind::finalizer::<K>()).await
            }
            Operation::Restore => {
                if same_request(begun, &fresh) {
                    self.remove_request(api, &fresh).await?;
                }
                Ok(())
            }
            Operation::Migrate => {
                finalizer::remove_all(api, &fresh).await?;
                // An object that was being deleted is gone with its last finalizer.
                let Some(fresh) = api.get_opt(&begun.name_any()).await? else {
                    return Ok(());
                };
                if fresh.uid() == begun.uid() && same_request(begun, &fresh) && requested(&fresh).is_some() {
                    self.remove_request(api, &fresh).await?;
                }
                Ok(())
            }
        }
    }

    /// Takes the operation annotation away from exactly this version of the object: a request that was written after it
    /// was read makes this fail, and is then seen.
    async fn remove_request(&self, api: &Api<K>, object: &K) -> Result<K> {
        let body = json!({"metadata": {
            "resourceVersion": object.resource_version(), "uid": object.uid(), "annotations": {OPERATION: null},
        }});
        self.provider.manager.merge(api, &object.name_any(), &body).await
    }

    async fn cluster_of(&self, object: &K) -> Result<Option<ClusterObject>> {
        let Some(namespace) = object.namespace() else {
            return Ok(None);
        };
        self.provider
            .seed
            .cluster_wide::<ClusterObject>()
            .get_opt(&namespace)
            .await
            .context(format_args!("could not read Cluster {namespace}"))
    }
}

impl<K, A> runner::Reconciler<K> for ExtensionReconciler<K, A>
where
    K: ExtensionObject,
    A: Actuator<K>,
{
    const NAME: &'static str = A::NAME;

    fn is_responsible(&self, object: &K) -> bool {
        operation::is_ours(object, self.provider.type_, self.provider.classes)
    }

    async fn apply(&self, object: Arc<K>) -> Result<Next> {
        self.run(&object).await
    }

    async fn cleanup(&self, object: Arc<K>) -> Result<Next> {
        self.run(&object).await
    }
}

/// Whether the request is still the one that was answered.
fn same_request<K: ExtensionObject>(begun: &K, fresh: &K) -> bool {
    requested(begun) == requested(fresh)
        && begun.annotations().get(TIMESTAMP) == fresh.annotations().get(TIMESTAMP)
        && begun.meta().generation == fresh.meta().generation
}

/// Whether the shoot has failed for good with the specification that it has now.
fn has_failed(cluster: &ClusterObject) -> bool {
    let shoot = &cluster.spec.shoot.0;
    let failed = json!(LastOperationState::Failed);
    shoot.pointer("/status/lastOperation/state") == Some(&failed)
        && shoot.pointer("/status/observedGeneration") == shoot.pointer("/metadata/generation")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_shoot_has_failed_only_with_the_specification_it_has_now() {
        for (state, observed, failed) in [
            ("Failed", json!(2), true),
            ("Failed", json!(1), false),
            ("Error", json!(2), false),
            ("Succeeded", json!(2), false),
        ] {
            let cluster: ClusterObject = serde_json::from_value(json!({
                "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": {"name": "shoot--p--s"},
                "spec": {"cloudProfile": {}, "shoot": {
                    "metadata": {"generation": 2}, "status": {"observedGeneration": observed, "lastOperation": {"state": state}},
                }},
            }))
            .unwrap();
            assert_eq!(has_failed(&cluster), failed, "{state} {observed}");
        }
    }
}
