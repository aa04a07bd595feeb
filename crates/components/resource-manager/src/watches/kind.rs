//! A watch of the labelled objects of a kind in a cluster. For kinds without a health check beyond existence,
//! only metadata are requested.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::{
    FutureExt, StreamExt,
    future::{BoxFuture, ready},
    stream::BoxStream,
};
use kube::{
    Api, Client, ResourceExt,
    runtime::{WatchStreamExt, watcher},
};
use permit::Permit;
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{debug, warn};

use super::{
    Event, Scope, State, Tell,
    entries::{Entries, WatchedObject},
};
use crate::{
    health::{self, Health},
    kinds::Served,
    live::{self, Live},
    names::{MANAGED_BY, MANAGED_BY_LABEL},
    object::{Key, Owner},
};

/// Maximum objects in an answer; fewer where the objects are too large ([`runtime::client::Connection`]).
const PAGE: u32 = 50;

/// The subject of a watch.
#[derive(Clone)]
pub struct Of {
    /// The client of the cluster.
    pub client: Client,
    /// The permit of the watch.
    pub permit: Permit,
    /// The ManagedResources of interest.
    pub scope: Scope,
    /// The kind.
    pub kind: Arc<Served>,
}

impl Of {
    /// Whether the kind has a health check beyond existence.
    fn is_judged(&self) -> bool {
        health::is_judged(&self.kind.resource.group, &self.kind.resource.kind)
    }
}

/// A running watch. The watch ends when this value is dropped.
pub struct KindWatch {
    entries: Arc<Mutex<Entries>>,
    tell: Tell,
    _end: DropGuard,
}

fn lock(entries: &Mutex<Entries>) -> MutexGuard<'_, Entries> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KindWatch {
    pub(super) fn new(of: &Of, tell: Tell) -> (Arc<Self>, BoxFuture<'static, ()>) {
        let entries = Entries::new(of.is_judged());
        let (entries, end) = (Arc::new(Mutex::new(entries)), CancellationToken::new());
        let watch = Self {
            entries: Arc::clone(&entries),
            tell: Arc::clone(&tell),
            _end: end.clone().drop_guard(),
        };
        // Boxed separately: the surrounding futures would reserve the space four times.
        let (permit, seeing) = (of.permit.clone(), see(of, entries, tell));
        let work = async move {
            let _ = end.run_until_cancelled(permit.guard(seeing)).await;
        };
        (Arc::new(watch), work.boxed())
    }

    /// Records that an object was applied, with the answer of the API server. `exactly`: labels and
    /// annotations of other writers count as a change.
    pub fn applied(&self, key: &Key, owner: &Owner, written: &Live, exactly: bool) {
        let (namespace, name) = (key.namespace.as_deref(), key.name.as_str());
        let applied = (written.marks(), written.version());
        let event = lock(&self.entries).applied(namespace, name, owner, applied, exactly);
        event.into_iter().for_each(&*self.tell);
    }

    /// This ManagedResource no longer manages an object.
    pub fn forget(&self, key: &Key, owner: &Owner) {
        lock(&self.entries).forget(key.namespace.as_deref(), &key.name, owner);
    }

    /// The state of an object.
    #[must_use]
    pub fn state(&self, key: &Key) -> State {
        lock(&self.entries).state(key.namespace.as_deref(), &key.name)
    }
}

/// An object, reduced to the used fields.
struct Shown {
    namespace: Option<String>,
    name: String,
    origin: Option<String>,
    marks: live::Marks,
    health: Health,
    version: u64,
}

impl Shown {
    fn new<const WHOLE: bool>(of: &Served, object: &live::ReducedObject<WHOLE>) -> Self {
        Self {
            namespace: object.namespace(),
            name: object.name_any(),
            origin: object.origin().map(str::to_owned),
            marks: object.marks(),
            health: health::assess(&of.resource.group, &of.resource.kind, object.value()),
            version: object.version(),
        }
    }
}

type Changes = BoxStream<'static, watcher::Result<watcher::Event<Shown>>>;

/// The present objects, and each change.
fn changes(of: &Of) -> Changes {
    if of.is_judged() {
        changes_of::<true>(of)
    } else {
        changes_of::<false>(of)
    }
}

fn changes_of<const WHOLE: bool>(of: &Of) -> Changes {
    let label = format!("{MANAGED_BY_LABEL}={MANAGED_BY}");
    let config = watcher::Config::default().labels(&label).page_size(PAGE);
    let kind = Arc::clone(&of.kind);
    let api = Api::<live::ReducedObject<WHOLE>>::all_with(of.client.clone(), &kind.resource);
    let show = move |object| Shown::new(&kind, &object);
    let events = watcher(api, config).map(move |event| {
        event.map(|event| match event {
            watcher::Event::Apply(object) => watcher::Event::Apply(show(object)),
            watcher::Event::Delete(object) => watcher::Event::Delete(show(object)),
            watcher::Event::InitApply(object) => watcher::Event::InitApply(show(object)),
            watcher::Event::Init => watcher::Event::Init,
            watcher::Event::InitDone => watcher::Event::InitDone,
        })
    });
    events.default_backoff().boxed()
}

/// The future keeps only the values that the events need, because each kind in each shoot has such a future.
fn see(of: &Of, entries: Arc<Mutex<Entries>>, tell: Tell) -> BoxFuture<'static, ()> {
    let (scope, kind) = (of.scope.clone(), Arc::clone(&of.kind));
    let seeing = changes(of).for_each(move |event| {
        let kind = kind.resource.kind.as_str();
        let told = take_in((&scope, kind), &entries, event);
        debug!(kind, ?scope, ?told, "seen");
        told.into_iter().for_each(&*tell);
        ready(())
    });
    seeing.boxed()
}

/// Records an event, and returns the resulting events.
fn take_in(
    (scope, kind): (&Scope, &str),
    entries: &Mutex<Entries>,
    event: watcher::Result<watcher::Event<Shown>>,
) -> Vec<Event> {
    let mut entries = lock(entries);
    match event {
        Ok(watcher::Event::Init) => {
            entries.list_begins();
            Vec::new()
        }
        Ok(watcher::Event::InitApply(object) | watcher::Event::Apply(object)) => {
            let owner = object.origin.as_deref().and_then(|origin| scope.owner(origin));
            match owner {
                Some(owner) => {
                    let seen = WatchedObject {
                        owner,
                        marks: object.marks,
                        health: object.health,
                        version: object.version,
                    };
                    entries
                        .sees(object.namespace.as_deref(), &object.name, seen)
                        .into_iter()
                        .collect()
                }
                // The object belongs to another owner, or has lost the origin annotation.
                None => entries
                    .misses(object.namespace.as_deref(), &object.name)
                    .into_iter()
                    .collect(),
            }
        }
        Ok(watcher::Event::Delete(object)) => entries
            .misses(object.namespace.as_deref(), &object.name)
            .into_iter()
            .collect(),
        Ok(watcher::Event::InitDone) => {
            let mut events = entries.list_ends();
            if entries.has_untracked() {
                warn!(
                    kind,
                    ?scope,
                    "more objects carry our label than anybody has applied: most are passed over"
                );
            }
            events.push(Event::Listed(scope.clone()));
            events
        }
        Err(watcher::Error::InitialListFailed(kube::Error::Api(status))) => {
            let why = format!(
                "{} cannot be listed: the API server answers {}",
                kind, status.code
            );
            let news = entries.list_fails(why);
            news.then(|| Event::Listed(scope.clone())).into_iter().collect()
        }
        // The server has answered, so the server is reachable.
        Err(watcher::Error::WatchError(_) | watcher::Error::WatchStartFailed(kube::Error::Api(_))) => {
            Vec::new()
        }
        Err(_) => vec![Event::Lost(scope.clone())],
    }
}
