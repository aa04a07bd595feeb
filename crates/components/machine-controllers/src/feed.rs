//! A shared watch of a kind: a cache of the objects, and for each controller a stream of changes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{SinkExt, Stream, StreamExt, channel::mpsc, pin_mut};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api,
    runtime::{
        WatchStreamExt,
        reflector::{self, ObjectRef, Store, store::Writer},
        watcher,
    },
};
use runtime::{Error, Result, client::apply::Object};
use tracing::debug;

/// Changes that wait for a controller. A controller takes each change at once, because no reconciliation
/// delays the stream.
const CHANGES_PER_SUBSCRIBER: usize = 64;
/// Delay before the next read of a cache whose first listing is not complete. Short, because a listing takes
/// at most seconds.
const RETRY_BEFORE_FIRST_LIST: Duration = Duration::from_secs(2);

/// The objects of a kind, as of the last event of the watch.
pub struct Cache<K: Object> {
    store: Store<K>,
    full: Arc<AtomicBool>,
}

impl<K: Object> Clone for Cache<K> {
    fn clone(&self) -> Self {
        Self {
            store: self.store.clone(),
            full: Arc::clone(&self.full),
        }
    }
}

impl<K: Object + Sync> Cache<K> {
    /// The store, for a controller.
    pub fn store(&self) -> Store<K> {
        self.store.clone()
    }

    /// All objects. Refused until the first listing is complete, because an incomplete list must not be used.
    pub fn all(&self) -> Result<Vec<Arc<K>>> {
        self.ensure_listed()?;
        Ok(self.store.state())
    }

    /// A single object, by name.
    pub fn get(&self, key: &ObjectRef<K>) -> Result<Option<Arc<K>>> {
        self.ensure_listed()?;
        Ok(self.store.get(key))
    }

    fn ensure_listed(&self) -> Result<()> {
        if self.full.load(Ordering::SeqCst) {
            return Ok(());
        }
        Err(Error::not_ready(
            RETRY_BEFORE_FIRST_LIST,
            format!("objects of kind {} were not listed yet", K::kind(&())),
        ))
    }
}

/// A watch that is not run yet.
pub struct Feed<K: Object> {
    cache: Cache<K>,
    writer: Writer<K>,
    trim: fn(&mut K),
    subscribers: Vec<Subscriber<K>>,
    known: BTreeMap<(String, String), ObjectMeta>,
}

struct Subscriber<K> {
    fingerprint: fn(&K) -> Option<u64>,
    seen: HashMap<(String, String), u64>,
    sender: mpsc::Sender<Result<K, watcher::Error>>,
}

impl<K: Object + Sync + Default> Feed<K> {
    /// `trim` removes the fields that no controller reads, to save memory.
    pub fn new(trim: fn(&mut K)) -> Self {
        let (store, writer) = reflector::store();
        Self {
            cache: Cache {
                store,
                full: Arc::default(),
            },
            writer,
            trim,
            subscribers: Vec::new(),
            known: BTreeMap::new(),
        }
    }

    /// The objects as of the last event of the watch, while the feed runs.
    pub fn cache(&self) -> Cache<K> {
        self.cache.clone()
    }

    /// The metadata of each object that was deleted, or that changed so that `fingerprint` differs. The
    /// receiver must be read.
    pub fn subscribe(
        &mut self,
        fingerprint: fn(&K) -> Option<u64>,
    ) -> impl Stream<Item = Result<K, watcher::Error>> + use<K> {
        let (sender, receiver) = mpsc::channel(CHANGES_PER_SUBSCRIBER);
        self.subscribers.push(Subscriber {
            fingerprint,
            seen: HashMap::new(),
            sender,
        });
        receiver
    }

    /// Watches without end, until the future is dropped.
    pub async fn run(mut self, api: Api<K>) {
        let trim = self.trim;
        let events = watcher(api, watcher::Config::default())
            .default_backoff()
            .modify(move |object| {
                object.meta_mut().managed_fields = None;
                trim(object);
            });
        pin_mut!(events);
        let mut listed = Vec::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => self.apply_event(event, &mut listed).await,
                Err(error) => debug!(%error, kind = %K::kind(&()), "a watch failed and is started again"),
            }
        }
    }

    async fn apply_event(&mut self, event: watcher::Event<K>, listed: &mut Vec<(String, String)>) {
        self.writer.apply_watcher_event(&event);
        match event {
            watcher::Event::Init => listed.clear(),
            watcher::Event::InitApply(object) => {
                listed.push(key(object.meta()));
                self.publish_change(&object).await;
            }
            watcher::Event::InitDone => {
                self.cache.full.store(true, Ordering::SeqCst);
                // Reports also deletions that happened while the watch was down: a subscriber may wait for
                // the deletion.
                listed.sort();
                let gone: Vec<_> = self
                    .known
                    .keys()
                    .filter(|key| listed.binary_search(key).is_err())
                    .cloned()
                    .collect();
                for key in gone {
                    self.publish_deletion(&key).await;
                }
                *listed = Vec::new();
            }
            watcher::Event::Apply(object) => self.publish_change(&object).await,
            watcher::Event::Delete(object) => self.publish_deletion(&key(object.meta())).await,
        }
    }

    async fn publish_change(&mut self, object: &K) {
        let (key, meta) = (key(object.meta()), reduce_metadata(object.meta()));
        for subscriber in &mut self.subscribers {
            let now = (subscriber.fingerprint)(object).unwrap_or_default();
            if subscriber.seen.insert(key.clone(), now) != Some(now) {
                subscriber.send_change(&meta).await;
            }
        }
        self.known.insert(key, meta);
    }

    async fn publish_deletion(&mut self, key: &(String, String)) {
        let Some(meta) = self.known.remove(key) else {
            return;
        };
        for subscriber in &mut self.subscribers {
            subscriber.seen.remove(key);
            subscriber.send_change(&meta).await;
        }
    }
}

impl<K: Object + Default> Subscriber<K> {
    async fn send_change(&mut self, meta: &ObjectMeta) {
        let mut told = K::default();
        *told.meta_mut() = meta.clone();
        // The receiver is dropped when the controllers end.
        let _ = self.sender.send(Ok(told)).await;
    }
}

fn key(meta: &ObjectMeta) -> (String, String) {
    (
        meta.namespace.clone().unwrap_or_default(),
        meta.name.clone().unwrap_or_default(),
    )
}

/// The fields that identify an object and the owners.
fn reduce_metadata(meta: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid: meta.uid.clone(),
        labels: meta.labels.clone(),
        owner_references: meta.owner_references.clone(),
        ..ObjectMeta::default()
    }
}
