//! ONE reconciler for every kind and every provider: it reads the object, decides ([`operation::decide`]),
//! and lets the actuator work between the writes of the protocol.
//!
//! Order of the writes, and why a crash after any of them loses nothing:
//! 1. finalizer (not for `migrate` and `delete`) — before anything exists that would have to be taken away;
//! 2. `lastOperation: Processing` — from here on the object itself says that something is unfinished;
//! 3. only for `reconcile`: the annotation goes (RX-13);
//! 4. the actuator;
//! 5. `lastOperation: Succeeded` together with state, resources and observed generation (RX-11, RX-30,
//!    RX-33);
//! 6. `delete` and `force_delete`: our finalizer goes; `migrate`: all finalizers go, so that deleting the
//!    object afterwards asks nobody (RX-10);
//! 7. `migrate` and `restore`: the annotation goes (RX-13), unless another request has been written
//!    meanwhile.

use std::{sync::Arc, time::Duration};

use api::{
    constants::{OPERATION, TIMESTAMP},
    extensions::{Cluster as ClusterObject, ExtensionClass, ExtensionObject},
};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::{Api, Client, Resource, ResourceExt};
use owner_checks::Tenure;
use runtime::{
    Cluster, Events, Next, Result, Seed, apply::FieldManager, clock, error::Explain as _, finalizer, runner,
};
use serde_json::json;
use tracing::debug;

use crate::{
    Actuator, Decision, Operation, OwnerChecks, Role, kind,
    operation::{self, decide, requested},
    status,
};

/// How soon to look again when the object was changed by someone else between two of our writes. Only long
/// enough for the other writer to finish.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// How long a call of an actuator may take unless its provider says otherwise. Longer than any cloud takes
/// for anything; an actuator that waits returns `NotReady` long before.
pub const WITHIN: Duration = Duration::from_secs(60 * 60);

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
    /// Who may act for which shoot: the same for all controllers of a process.
    pub owners: OwnerChecks,
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

    /// Bounds one call of the actuator; [`WITHIN`] unless said otherwise.
    #[must_use]
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// The same by another way to the same seed, on which requests can be made to fail.
    pub(crate) fn by_way_of(mut self, way: impl FnOnce(Client) -> Client) -> Self {
        let seed = &self.provider.seed;
        self.provider.seed = Seed::new(way(seed.client().clone()), seed.permit());
        self
    }

    /// The same that asks others whose a shoot is.
    pub(crate) fn owned_by(mut self, owners: OwnerChecks) -> Self {
        self.provider.owners = owners;
        self
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
        let role = Role::of(&object, cluster.as_ref());
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
        right: Option<&Tenure>,
    ) -> Result<Next> {
        match self.begin(api, object, operation, cluster.as_ref()).await? {
            Some(object) => self.work(api, object, operation, cluster, right).await,
            None => Ok(Next::After(LOOK_AGAIN)),
        }
    }

    /// Steps 1 to 3. `None`: the object asks for something else by now, or has been written since it was
    /// read. A beginning that overwrites what came in between would tell of work that nobody does: the last
    /// write of a former process, which takes the finalizer away, may arrive that late.
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

    /// Steps 6 and 7. `begun`: the object as it was when the actuator began; `fresh`: after the success was
    /// written.
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

    /// Takes the operation annotation away from exactly this version of the object: a request that was
    /// written after it was read makes this fail, and is then seen.
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

/// Whether the request is still the one that was answered.
fn same_request<K: ExtensionObject>(begun: &K, fresh: &K) -> bool {
    requested(begun) == requested(fresh)
        && begun.annotations().get(TIMESTAMP) == fresh.annotations().get(TIMESTAMP)
        && begun.meta().generation == fresh.meta().generation
}
