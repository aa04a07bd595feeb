//! The controller runner: middleware around the code of a controller author.
//!
//! For each object, the runner checks the permit, opens a span, keeps the finalizer, and calls `apply` or
//! `cleanup`. Then the runner counts the result and reports a failure as an Event. The next call comes after
//! the interval that the author returned, immediately on a watched change, or after a back-off. The back-off
//! grows with each failure of *this* object and is reset on success.
//!
//! A controller of objects of several projects shares the workers between the projects ([`ByProject`]).

use std::{
    future::Future,
    hash::{BuildHasher, Hash, RandomState},
    sync::{Arc, LazyLock, Mutex, PoisonError},
    time::Duration,
};

use backon::{BackoffBuilder, ExponentialBuilder};
use futures::{Stream, StreamExt, stream};
use k8s_openapi::NamespaceResourceScope;
use kube::{
    Api, Resource, ResourceExt,
    runtime::{
        Controller, WatchStreamExt,
        controller::{Action, Config},
        reflector::{self, ObjectRef, Store},
        watcher,
    },
};
use permit::Permit;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, info_span, warn};

use crate::{
    Error, Result,
    bounds::{SharePercent, WorkerShares},
    client::{Cluster, apply::Object},
    controller::{
        Events,
        failure_counts::FailureCounts,
        finalizer,
        store_changes::{self, waking_objects},
    },
    process::metrics::Metrics,
};

/// First pause after a failure. Shorter than any time that a person waits for.
const BACKOFF_FIRST: Duration = Duration::from_secs(1);
/// Longest pause after failures. Shorter than the time after which an operator gives up watching (R7-46: a
/// flow continues once the cause is gone).
const BACKOFF_LONGEST: Duration = Duration::from_secs(60);

/// The value by which kube bounds no concurrency.
const UNBOUNDED: u16 = 0;

/// When a reconciler wants to be called again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// On the next change of a watched object.
    Change,
    /// After this time at the latest.
    After(Duration),
}

/// The code of a controller author. Every call may be repeated, and may be dropped at any await when the
/// process stops.
pub trait Reconciler<K: Object>: Send + Sync + 'static {
    /// Name of the controller in metrics, spans and logs.
    const NAME: &'static str;

    /// Finalizer that the runner sets before the first `apply` and removes after `cleanup` returned
    /// `Next::Change`. `None`: the author decides about finalizers; `cleanup` is then called for objects that
    /// are being deleted.
    const FINALIZER: Option<&'static str> = None;

    /// Whether this process acts on the object. Objects without a responsible process get no finalizer and
    /// are not counted.
    fn is_responsible(&self, object: &K) -> bool {
        let _ = object;
        true
    }

    /// Brings the outside systems to the state that the object describes.
    fn apply(&self, object: Arc<K>) -> impl Future<Output = Result<Next>> + Send;

    /// Removes all that `apply` created. `Next::After`: not finished, call again (the finalizer stays).
    fn cleanup(&self, object: Arc<K>) -> impl Future<Output = Result<Next>> + Send;
}

/// A watch of objects whose size the writers of the objects control. An answer is decoded in memory
/// completely before the fields that no controller reads are removed. A starting process has several answers
/// in memory at once, so the pages are small.
#[must_use]
pub fn few_at_a_time() -> watcher::Config {
    watcher::Config::default().page_size(10)
}

/// A controller that is woken only when the hash from `fingerprint` has changed. So the controller's own
/// status writes neither wake the controller nor reset the back-off. `None` always wakes.
/// `metadata.managedFields` is dropped from the cache.
pub fn controller<K: Object + Sync>(
    api: Api<K>,
    config: watcher::Config,
    fingerprint: impl Fn(&K) -> Option<u64> + Send + 'static,
) -> Controller<K> {
    let events = watcher(api, config)
        .default_backoff()
        .modify(|object| object.managed_fields_mut().clear());
    controller_of_events(events, fingerprint)
}

/// As [`controller`], with the events of a watch that the caller has prepared. The store shows an object
/// before the object wakes the controller, also after a list of several pages ([`store_changes`]).
pub fn controller_of_events<K: Object + Sync>(
    events: impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + 'static,
    fingerprint: impl Fn(&K) -> Option<u64> + Send + 'static,
) -> Controller<K> {
    let (reader, writer) = reflector::store();
    let woken = waking_objects(store_changes::changes(events, writer), fingerprint);
    Controller::for_stream(stream::pending(), reader).reconcile_on(woken)
}

/// Hashes any value, for the fingerprint of [`controller`].
pub fn fingerprint(value: impl Hash) -> Option<u64> {
    Some(hash(value))
}

/// Hashes any value with keys of this process. With fixed keys, a user could prepare two contents with the
/// same hash, so that a controller misses a change. Comparable only within a single process.
pub fn hash(value: impl Hash) -> u64 {
    static KEYS: LazyLock<RandomState> = LazyLock::new(RandomState::new);
    KEYS.hash_one(value)
}

/// The inputs that a runner needs from the process.
#[derive(Clone)]
pub struct Settings {
    /// At most so many objects at the same time.
    pub concurrency: u16,
    /// Ends the controller; work in progress is dropped, since every step may be run again (I5).
    pub shutdown: CancellationToken,
    /// The right to act: without a valid permit, no object is reconciled.
    pub permit: Permit,
    /// The process's metrics.
    pub metrics: Metrics,
    /// Events in the cluster of the objects.
    pub events: Events,
}

/// [`run`] for objects that are in namespaces of a cluster.
pub async fn run_namespaced<K, R>(
    controller: Controller<K>,
    cluster: &impl Cluster,
    reconciler: Arc<R>,
    settings: Settings,
) where
    K: Object + Resource<Scope = NamespaceResourceScope> + Sync,
    R: Reconciler<K>,
{
    let cluster = cluster.clone();
    let api_of = move |object: &K| cluster.namespaced(&object.namespace().unwrap_or_default());
    run(controller, api_of, reconciler, settings).await;
}

/// As [`run_namespaced`]. The namespaces share the workers ([`ByProject`]): in the garden, a namespace with
/// Shoots belongs to a single project.
pub async fn run_namespaced_by_project<K, R>(
    controller: Controller<K>,
    cluster: &impl Cluster,
    reconciler: Arc<R>,
    settings: Settings,
    share: SharePercent,
) where
    K: Object + Resource<Scope = NamespaceResourceScope> + Sync,
    R: Reconciler<K>,
{
    let cluster = cluster.clone();
    let api_of = move |object: &K| cluster.namespaced(&object.namespace().unwrap_or_default());
    let by_project = ByProject {
        share,
        project: |object: &K| object.namespace().unwrap_or_default(),
    };
    run_by_project(controller, api_of, reconciler, settings, by_project).await;
}

/// Runs a controller until shutdown. `api_of` returns the `Api` of an object (to write the finalizer).
pub async fn run<K, R>(
    controller: Controller<K>,
    api_of: impl Fn(&K) -> Api<K> + Send + Sync + 'static,
    reconciler: Arc<R>,
    settings: Settings,
) where
    K: Object + Sync,
    R: Reconciler<K>,
{
    let concurrency = settings.concurrency;
    let running = Running {
        api_of: Box::new(api_of),
        reconciler,
        settings,
        failures: Mutex::new(FailureCounts::new(controller.store())),
        queue: None,
    };
    run_until_shutdown(controller, running, concurrency).await;
}

/// The rule that shares the workers of a controller between projects.
pub struct ByProject<K> {
    /// The part of the workers that a project may hold beside a second project.
    pub share: SharePercent,
    /// The project of an object. Any name that is unique for the project.
    pub project: fn(&K) -> String,
}

/// As [`run`], with shares of the workers for each project ([`WorkerShares`]). A reconciliation that holds a
/// worker for long then delays no object of a different project. Each project waits in a separate queue.
pub async fn run_by_project<K, R>(
    controller: Controller<K>,
    api_of: impl Fn(&K) -> Api<K> + Send + Sync + 'static,
    reconciler: Arc<R>,
    settings: Settings,
    by_project: ByProject<K>,
) where
    K: Object + Sync,
    R: Reconciler<K>,
{
    let queue = ProjectQueues {
        shares: WorkerShares::new(settings.concurrency, by_project.share),
        project: by_project.project,
        objects: controller.store(),
    };
    let running = Running {
        api_of: Box::new(api_of),
        reconciler,
        settings,
        failures: Mutex::new(FailureCounts::new(controller.store())),
        queue: Some(queue),
    };
    // A bound of kube would be a single queue for all projects.
    run_until_shutdown(controller, running, UNBOUNDED).await;
}

async fn run_until_shutdown<K, R>(controller: Controller<K>, running: Running<K, R>, concurrency: u16)
where
    K: Object + Sync,
    R: Reconciler<K>,
{
    let settings = &running.settings;
    let shutdown = settings.shutdown.clone();
    let (objects, unsynced) = (controller.store(), settings.metrics.begin_sync(R::NAME));
    let context = Arc::new(running);
    let mut running = Box::pin(
        controller
            .with_config(Config::default().concurrency(concurrency))
            .run(
                |object, context| async move { context.reconcile(object).await },
                Running::on_error,
                context,
            )
            .take_until(shutdown.cancelled_owned())
            .for_each(|outcome| {
                if let Err(error) = outcome {
                    debug!(controller = R::NAME, %error, "reconciliation ended with an error");
                }
                std::future::ready(())
            }),
    );
    tokio::select! {
        () = &mut running => return,
        listed = objects.wait_until_ready() => if listed.is_ok() {
            unsynced.synced();
        },
    }
    running.await;
}

/// Returns the `Api` for the writes to an object.
type ApiOf<K> = Box<dyn Fn(&K) -> Api<K> + Send + Sync>;

struct Running<K: Object, R> {
    api_of: ApiOf<K>,
    reconciler: Arc<R>,
    settings: Settings,
    /// Consecutive failures by object.
    failures: Mutex<FailureCounts<K>>,
    /// `None`: kube bounds the concurrency.
    queue: Option<ProjectQueues<K>>,
}

/// The queues of a controller with shares for each project.
struct ProjectQueues<K: Object> {
    shares: Arc<WorkerShares>,
    project: fn(&K) -> String,
    objects: Store<K>,
}

impl<K: Object + Sync, R: Reconciler<K>> Running<K, R> {
    async fn reconcile(&self, object: Arc<K>) -> Result<Action> {
        if !self.reconciler.is_responsible(&object) {
            return Ok(Action::await_change());
        }
        // Both calls are boxed: thousands of objects may wait here, and the task of each must be small.
        let Some(queue) = &self.queue else {
            return Box::pin(self.work(object)).await;
        };
        let waiting = self.settings.metrics.begin_wait(R::NAME);
        let slot = queue.shares.acquire(&(queue.project)(&object)).await;
        drop(waiting);
        // The object may have changed during the wait.
        let newest = queue.objects.get(&ObjectRef::from_obj(object.as_ref()));
        let Some(newest) = newest.filter(|newest| self.reconciler.is_responsible(newest)) else {
            return Ok(Action::await_change());
        };
        let outcome = Box::pin(self.work(newest)).await;
        drop(slot);
        outcome
    }

    /// A reconciliation with span, permit, metrics and Event.
    async fn work(&self, object: Arc<K>) -> Result<Action> {
        let span = info_span!(
            "reconcile",
            controller = R::NAME,
            namespace = object.namespace().unwrap_or_default(),
            name = object.name_any()
        );
        let started = Instant::now();
        let _working = self.settings.metrics.begin_work(R::NAME);
        // The guard is here, in the task that kube spawns for each object: a guard around the whole
        // controller would not cover that task.
        let call = self.call(Arc::clone(&object)).instrument(span.clone());
        let outcome = self.settings.permit.guard(call).await;
        let outcome = outcome.unwrap_or_else(|refused| Err(refused.into()));
        let result = outcome.as_ref().map_or_else(Error::class, |_| "success");
        self.settings
            .metrics
            .reconciled(R::NAME, result, started.elapsed());
        if let Err(error) = &outcome {
            if error.is_failure() {
                span.in_scope(|| {
                    warn!(
                        error = format_args!("{error:#}"),
                        class = error.class(),
                        "reconciliation failed"
                    );
                });
                self.settings
                    .events
                    .warning(object.as_ref(), "ReconcileError", &error.to_string())
                    .await;
            } else {
                span.in_scope(|| {
                    debug!(
                        error = format_args!("{error:#}"),
                        class = error.class(),
                        "nothing to do now"
                    );
                });
            }
        } else {
            self.failures().remove(object.as_ref());
        }
        outcome.map(|next| match next {
            Next::Change => Action::await_change(),
            Next::After(pause) => Action::requeue(pause),
        })
    }

    async fn call(&self, object: Arc<K>) -> Result<Next> {
        let api = (self.api_of)(&object);
        if object.meta().deletion_timestamp.is_none() {
            if let Some(name) = R::FINALIZER {
                finalizer::ensure(&api, object.as_ref(), name).await?;
            }
            return self.reconciler.apply(object).await;
        }
        let Some(name) = R::FINALIZER else {
            return self.reconciler.cleanup(object).await;
        };
        if !object.finalizers().iter().any(|f| f == name) {
            return Ok(Next::Change);
        }
        let next = self.reconciler.cleanup(Arc::clone(&object)).await?;
        if next == Next::Change {
            Self::let_go(&api, &object, name).await?;
        }
        Ok(next)
    }

    /// The cleanup's own status writes are no reason for a second cleanup; a change by a user (new
    /// generation) is.
    async fn let_go(api: &Api<K>, object: &K, name: &str) -> Result<()> {
        if finalizer::try_remove(api, object, name).await? {
            return Ok(());
        }
        let fresh = api.get_opt(&object.name_any()).await?;
        let Some(fresh) = fresh.filter(|fresh| fresh.uid() == object.uid()) else {
            return Ok(());
        };
        if fresh.meta().generation != object.meta().generation {
            return Err(Error::not_ready(
                BACKOFF_FIRST,
                "the object was changed while it was cleaned up",
            ));
        }
        finalizer::remove(api, &fresh, name).await
    }

    #[allow(clippy::needless_pass_by_value)] // kube calls it so
    fn on_error(object: Arc<K>, error: &Error, context: Arc<Self>) -> Action {
        match error {
            Error::NotReady { after, .. } => return Action::requeue(*after),
            // The owner process acts. Whoever returns the ownership writes the object, and that write wakes
            // this controller.
            Error::NotOwner(_) => return Action::requeue(BACKOFF_LONGEST),
            _ => {}
        }
        let count = context.failures().add(object.as_ref());
        Action::requeue(pause_after(count))
    }

    fn failures(&self) -> std::sync::MutexGuard<'_, FailureCounts<K>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pause after the n-th failure in a row, with jitter.
fn pause_after(failures: usize) -> Duration {
    ExponentialBuilder::default()
        .with_min_delay(BACKOFF_FIRST)
        .with_max_delay(BACKOFF_LONGEST)
        .with_jitter()
        .without_max_times()
        .build()
        .nth(failures.saturating_sub(1))
        .unwrap_or(BACKOFF_LONGEST)
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "runner_shares_tests.rs"]
mod shares_tests;
