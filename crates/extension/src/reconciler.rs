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

use std::{sync::Arc, time::Duration};

use api::{
    constants::{OPERATION, TIMESTAMP},
    extensions::{Cluster as ClusterObject, ExtensionClass, ExtensionObject},
    meta::LastOperationState,
};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Api, Resource, ResourceExt};
use runtime::{
    Cluster, Error, Events, Next, Result, Seed, apply::FieldManager, clock, error::Context as _, finalizer,
    runner,
};
use serde_json::json;
use tracing::{debug, info, warn};

use crate::{
    Actuator, Context, Decision, Guard, Operation, Outcome, Released,
    guard::Subject,
    kind,
    operation::{self, decide, requested},
    status,
};

/// How soon to look again when the object was changed by someone else between two of our writes. Only long enough for
/// the other writer to finish.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

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
pub struct ExtensionReconciler<K, A, G> {
    provider: Provider,
    scope: Scope<K>,
    actuator: A,
    guard: G,
    events: Events,
}

impl<K, A, G> ExtensionReconciler<K, A, G>
where
    K: ExtensionObject,
    A: Actuator<K>,
    G: Guard,
{
    /// A reconciler; `scope` is [`namespaced`] or [`cluster_wide`].
    pub fn new(provider: Provider, scope: Scope<K>, actuator: A, guard: G) -> Self {
        let events = Events::new(provider.seed.client().clone(), provider.manager.0);
        Self {
            provider,
            scope,
            actuator,
            guard,
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
        match self.begin(&api, object, operation, cluster.as_ref()).await? {
            Some(object) => self.work(&api, object, operation, cluster).await,
            None => Ok(Next::After(LOOK_AGAIN)),
        }
    }

    /// Steps 1 to 3. `None`: the object asks for something else by now.
    async fn begin(
        &self,
        api: &Api<K>,
        object: K,
        operation: Operation,
        cluster: Option<&ClusterObject>,
    ) -> Result<Option<K>> {
        let name = object.name_any();
        if operation != Operation::Migrate && !operation.deletes() {
            finalizer::ensure(api, &object, &kind::finalizer::<K>()).await?;
        }
        let begun = status::processing(&object, operation, clock::now());
        let object: K = self.provider.manager.merge_status(api, &name, &begun).await?;
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
        let context = Context {
            seed: self.provider.seed.clone(),
            manager: self.provider.manager,
            object: Arc::clone(&object),
            cluster,
        };
        info!(?operation, "begins");
        match self.act(&context, operation).await {
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
                    Error::NotReady { why, .. } => status::waiting(object.as_ref(), operation, why, now),
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

    async fn act(&self, context: &Context<K>, operation: Operation) -> Result<Outcome> {
        let subject = Subject {
            kind: kind::name::<K>().into_owned(),
            namespace: context.object.namespace(),
            name: context.name(),
        };
        let work = async {
            match operation {
                Operation::Create | Operation::Reconcile => self.actuator.reconcile(context).await,
                Operation::Restore => self.actuator.restore(context).await,
                Operation::Migrate => self.actuator.migrate(context).await,
                Operation::Delete => self.actuator.delete(context).await.map(|()| Outcome::none()),
                Operation::ForceDelete => {
                    let released = self.actuator.force_delete(context).await?;
                    self.tell(context, &released).await;
                    Ok(Outcome::none())
                }
            }
        };
        // RX-41 and RX-42: the only place that asks whose shoot it is.
        if operation.acts_outside() {
            self.guard.run(&subject, work).await
        } else {
            work.await
        }
    }

    /// What is left behind costs money or stands in somebody's way until a person has removed it.
    async fn tell(&self, context: &Context<K>, released: &Released) {
        for what in &released.left_behind {
            warn!(what, "left behind by a forced deletion");
        }
        if !released.left_behind.is_empty() {
            let note = released.left_behind.join("; ");
            self.events
                .warning(context.object.as_ref(), LEFT_BEHIND, &note)
                .await;
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

impl<K, A, G> runner::Reconciler<K> for ExtensionReconciler<K, A, G>
where
    K: ExtensionObject,
    A: Actuator<K>,
    G: Guard,
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
