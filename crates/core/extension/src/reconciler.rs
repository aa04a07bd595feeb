//! The only reconciler for every kind and every provider: reads the object, decides ([`operation::decide`]),
//! and calls the actuator between the writes of the protocol.
//!
//! Order of the writes, and why a crash after any write loses no work:
//! 1. Finalizer (not for `migrate` and `delete`): before a resource exists that would have to be removed.
//! 2. `lastOperation: Processing`: from here on, the object records the unfinished operation.
//! 3. Only for `reconcile`: the annotation is removed (RX-13).
//! 4. The actuator.
//! 5. `lastOperation: Succeeded` together with state, resources and observed generation (RX-11, RX-30,
//!    RX-33).
//! 6. `delete` and `force_delete`: the provider's finalizer is removed. `migrate`: all finalizers are
//!    removed, so that the later deletion of the object needs no controller (RX-10).
//! 7. `migrate` and `restore`: the annotation is removed (RX-13), unless a new request has been written
//!    meanwhile.

use std::{sync::Arc, time::Duration};

use api::{
    constants::{OPERATION, TIMESTAMP},
    extensions::{Cluster as ClusterObject, ExtensionClass, ExtensionObject},
};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Api, Client, Resource, ResourceExt};
use owner_checks::OwnershipRight;
use runtime::{
    Result,
    client::{Cluster, Seed, apply::FieldManager},
    clock,
    controller::{Events, Next, finalizer, runner},
    error::Explain as _,
};
use serde_json::json;
use tracing::debug;

use crate::{
    Actuator, Decision, Operation, OwnerChecks, Role, kind,
    operation::{self, decide, requested},
    status,
};

/// Requeue interval after a concurrent change between two writes of the protocol. Just long enough for the
/// concurrent writer to finish.
const CONFLICT_REQUEUE: Duration = Duration::from_millis(200);

/// Default timeout of an actuator's call. Longer than any action of a cloud takes; an actuator that waits
/// returns `NotReady` long before.
pub const WITHIN: Duration = Duration::from_secs(60 * 60);

/// Reason of the Event with the resources that a forced deletion has left behind.
pub const LEFT_BEHIND: &str = "LeftBehind";

/// The settings that all reconcilers of a provider share.
#[derive(Clone, Debug)]
pub struct Provider {
    /// The seed with the objects.
    pub seed: Seed,
    /// The field manager of writes.
    pub manager: FieldManager,
    /// `spec.type` of the provider's objects.
    pub type_: &'static str,
    /// Classes of clusters that the provider serves.
    pub classes: &'static [ExtensionClass],
    /// The owner checks, shared by all controllers of a process.
    pub owners: OwnerChecks,
}

/// Returns the `Api` of an object; a kind is either namespaced or cluster-scoped.
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
    pub(crate) provider: Provider,
    scope: Scope<K>,
    pub(crate) actuator: A,
    pub(crate) events: Events,
    pub(crate) within: Duration,
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
            within: WITHIN,
        }
    }

    /// Sets the timeout of an actuator's call; the default is [`WITHIN`].
    #[must_use]
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// The same with a wrapped client for the same seed, so that a test can make requests fail.
    #[must_use]
    pub fn by_way_of(mut self, way: impl FnOnce(Client) -> Client) -> Self {
        let seed = &self.provider.seed;
        self.provider.seed = Seed::new(way(seed.client().clone()), seed.permit());
        self
    }

    /// The same with different owner checks, for tests.
    #[must_use]
    pub fn owned_by(mut self, owners: OwnerChecks) -> Self {
        self.provider.owners = owners;
        self
    }

    /// The seed with the objects.
    #[must_use]
    pub fn seed(&self) -> &Seed {
        &self.provider.seed
    }

    /// The `Api` of an object of the kind.
    #[must_use]
    pub fn api_of(&self, object: &K) -> Api<K> {
        (self.scope)(&self.provider.seed, object)
    }

    /// Runs the next operation of an object. May be called at any time and for any object of the provider.
    pub async fn run(&self, seen: &K) -> Result<Next> {
        let api = self.api_of(seen);
        let name = seen.name_any();
        // The event may be older than the controller's last write.
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
        let role = Role::for_object(&object, cluster.as_ref());
        if !role.allows(operation) {
            return self.refuse(&api, &object, operation, &role).await;
        }
        let right = match self.right_of(&object, operation, cluster.as_ref()).await {
            Ok(right) => right,
            Err(refusal) => return self.refuse_unowned(&api, &object, operation, refusal).await,
        };
        let acting = Box::pin(self.act_under(&api, object, operation, cluster, right.as_ref()));
        match &right {
            Some(right) => right.beside(acting).await,
            None => acting.await,
        }
    }

    /// Steps 1 to 7.
    async fn act_under(
        &self,
        api: &Api<K>,
        object: K,
        operation: Operation,
        cluster: Option<ClusterObject>,
        right: Option<&OwnershipRight>,
    ) -> Result<Next> {
        match self.begin(api, object, operation, cluster.as_ref()).await? {
            Some(object) => self.work(api, object, operation, cluster, right).await,
            None => Ok(Next::After(CONFLICT_REQUEUE)),
        }
    }

    /// Steps 1 to 3. `None`: the request of the object has changed, or the object has been written since the
    /// read. A begin that overwrites a concurrent write would report work that does not run. For example, the
    /// last write of a former process, the removal of the finalizer, may arrive that late.
    async fn begin(
        &self,
        api: &Api<K>,
        mut object: K,
        operation: Operation,
        cluster: Option<&ClusterObject>,
    ) -> Result<Option<K>> {
        if operation != Operation::Migrate
            && !operation.deletes()
            && let Some(written) = finalizer::ensure(api, &object, &kind::finalizer_of(&object)).await?
        {
            object = written;
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

    /// Steps 6 and 7. `begun`: the object at the begin of the actuator's call; `fresh`: the object after the
    /// write of the success.
    pub(crate) async fn end(&self, api: &Api<K>, begun: &K, fresh: K, operation: Operation) -> Result<()> {
        match operation {
            Operation::Create | Operation::Reconcile => Ok(()),
            Operation::Delete | Operation::ForceDelete => {
                finalizer::remove(api, &fresh, &kind::finalizer_of(&fresh)).await
            }
            Operation::Restore => {
                if same_request(begun, &fresh) {
                    self.remove_request(api, &fresh).await?;
                }
                Ok(())
            }
            Operation::Migrate => {
                finalizer::remove_all(api, &fresh).await?;
                // An object in deletion is gone with the last finalizer.
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

    /// Removes the operation annotation from exactly this version of the object. A request that was written
    /// after the read makes the removal fail, and is handled next.
    async fn remove_request(&self, api: &Api<K>, object: &K) -> Result<K> {
        let body = json!({"metadata": {
            "resourceVersion": object.resource_version(), "uid": object.uid(), "annotations": {OPERATION: null},
        }});
        self.provider.manager.merge(api, &object.name_any(), &body).await
    }

    pub(crate) async fn cluster_of(&self, object: &K) -> Result<Option<ClusterObject>> {
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

/// Whether the request is unchanged since the operation began.
fn same_request<K: ExtensionObject>(begun: &K, fresh: &K) -> bool {
    requested(begun) == requested(fresh)
        && begun.annotations().get(TIMESTAMP) == fresh.annotations().get(TIMESTAMP)
        && begun.meta().generation == fresh.meta().generation
}
