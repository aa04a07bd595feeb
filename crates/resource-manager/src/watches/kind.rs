//! One watch: of the objects of one kind in one cluster that carry the label. Of kinds whose objects are
//! healthy by being there, only metadata come over the wire.

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
    entries::{Entries, Seen},
};
use crate::{
    health::{self, Health},
    kinds::Served,
    live::{self, Marks},
    names::{MANAGED_BY, MANAGED_BY_LABEL},
    object::{Key, Owner},
};

/// Objects in one answer, which has fewer where they are too large ([`runtime::Connection`]).
const PAGE: u32 = 50;

/// What is to be watched.
#[derive(Clone)]
pub struct Of {
    /// In which cluster.
    pub client: Client,
    /// By which right.
    pub permit: Permit,
    /// Whose objects count.
    pub scope: Scope,
    /// Which kind, and how it is asked for.
    pub kind: Arc<Served>,
}

impl Of {
    /// Whether there is more to an object than that it is there.
    fn is_judged(&self) -> bool {
        health::is_judged(&self.kind.resource.group, &self.kind.resource.kind)
    }
}

/// A watch that runs. It ends when this is dropped.
pub struct KindWatch {
    entries: Arc<Mutex<Entries>>,
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
            _end: end.clone().drop_guard(),
        };
        // In a box by itself: what is around it would keep room for it four times.
        let (permit, seeing) = (of.permit.clone(), see(of, entries, tell));
        let work = async move {
            let _ = end.run_until_cancelled(permit.guard(seeing)).await;
        };
        (Arc::new(watch), work.boxed())
    }

    /// An object was applied and looks like this. `exactly`: nobody else's labels and annotations are borne.
    pub fn applied(&self, key: &Key, owner: &Owner, marks: Marks, exactly: bool) {
        lock(&self.entries).applied(key.namespace.as_deref(), &key.name, owner, marks, exactly);
    }

    /// An object is not kept any more by this one.
    pub fn forget(&self, key: &Key, owner: &Owner) {
        lock(&self.entries).forget(key.namespace.as_deref(), &key.name, owner);
    }

    /// How an object is.
    #[must_use]
    pub fn state(&self, key: &Key) -> State {
        lock(&self.entries).state(key.namespace.as_deref(), &key.name)
    }
}

/// An object, without what nobody looks at.
struct Shown {
    namespace: Option<String>,
    name: String,
    origin: Option<String>,
    marks: Marks,
    health: Health,
}

impl Shown {
    fn new<const WHOLE: bool>(of: &Served, object: &live::Seen<WHOLE>) -> Self {
        Self {
            namespace: object.namespace(),
            name: object.name_any(),
            origin: object.origin().map(str::to_owned),
            marks: object.marks(),
            health: health::of(&of.resource.group, &of.resource.kind, object.value()),
        }
    }
}

type Changes = BoxStream<'static, watcher::Result<watcher::Event<Shown>>>;

/// What is there, and each change.
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
    let api = Api::<live::Seen<WHOLE>>::all_with(of.client.clone(), &kind.resource);
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

/// Keeps nothing of what it was begun with but what it tells of: there is one of these for each kind in each
/// shoot.
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

/// Notes an event, and says what follows from it.
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
                    let seen = Seen {
                        owner,
                        marks: object.marks,
                        health: object.health,
                    };
                    entries
                        .sees(object.namespace.as_deref(), &object.name, seen)
                        .into_iter()
                        .collect()
                }
                // Another's, or one that does not say any more that it is ours.
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
            if entries.is_crowded() {
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
        // The server has said something: it is there.
        Err(watcher::Error::WatchError(_) | watcher::Error::WatchStartFailed(kube::Error::Api(_))) => {
            Vec::new()
        }
        Err(_) => vec![Event::Lost(scope.clone())],
    }
}
