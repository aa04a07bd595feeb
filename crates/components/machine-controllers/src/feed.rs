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
use runtime::{Error, Result, client::apply::Object, controller::store_changes::apply_to_store};
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
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => self.apply_event(&event).await,
                Err(error) => debug!(%error, kind = %K::kind(&()), "a watch failed and is started again"),
            }
        }
    }

    /// Publishes each object after the store shows the object, also deletions that happened while the watch
    /// was down: a subscriber may wait for the deletion.
    async fn apply_event(&mut self, event: &watcher::Event<K>) {
        let changed = apply_to_store(&mut self.writer, event);
        if matches!(event, watcher::Event::InitDone) {
            self.cache.full.store(true, Ordering::SeqCst);
        }
        for reference in changed {
            match self.cache.store.get(&reference) {
                Some(object) => self.publish_change(&object).await,
                None => self.publish_deletion(&key_of(&reference)).await,
            }
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

fn key_of<K: Object>(reference: &ObjectRef<K>) -> (String, String) {
    (
        reference.namespace.clone().unwrap_or_default(),
        reference.name.clone(),
    )
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::FutureExt as _;
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    fn object(name: &str, value: &str) -> ConfigMap {
        let object = json!({"metadata": {"name": name}, "data": {"value": value}});
        serde_json::from_value(object).unwrap()
    }

    /// Each change that waits, with the value in the store at this time; `-`: not in the store.
    fn waiting(
        changes: &mut (impl Stream<Item = Result<ConfigMap, watcher::Error>> + Unpin),
        store: &Store<ConfigMap>,
    ) -> Vec<String> {
        let read = std::iter::from_fn(|| changes.next().now_or_never().flatten());
        let mut read: Vec<_> = read
            .map(|change| {
                let name = change.unwrap().metadata.name.unwrap();
                let data = store
                    .get(&ObjectRef::new(&name))
                    .and_then(|object| object.data.clone());
                let value = data.and_then(|data| data.get("value").cloned());
                format!("{name}={}", value.as_deref().unwrap_or("-"))
            })
            .collect();
        read.sort();
        read
    }

    /// A controller that reads the store before the last page would reconcile the object from before the
    /// outage, and would not be woken again.
    #[test]
    fn a_change_during_an_outage_is_published_after_a_list_of_two_pages() {
        let mut feed: Feed<ConfigMap> = Feed::new(|_| {});
        let store = feed.cache().store();
        let mut changes = feed.subscribe(|object| runtime::controller::runner::fingerprint(&object.data));
        let item = |name: &str, value: &str| watcher::Event::InitApply(object(name, value));
        let mut page = |events: Vec<watcher::Event<ConfigMap>>| {
            for event in &events {
                feed.apply_event(event).now_or_never().unwrap();
            }
            waiting(&mut changes, &store)
        };
        let first = vec![
            watcher::Event::Init,
            item("a", "1"),
            item("b", "1"),
            item("c", "1"),
        ];
        assert_eq!(page(first), [""; 0], "the list is not complete");
        assert_eq!(page(vec![watcher::Event::InitDone]), ["a=1", "b=1", "c=1"]);
        // In the outage, `a` is changed, `b` is deleted and `d` is created.
        assert_eq!(
            page(vec![watcher::Event::Init, item("a", "2"), item("d", "1")]),
            [""; 0]
        );
        let last = vec![item("c", "1"), watcher::Event::InitDone];
        assert_eq!(
            page(last),
            ["a=2", "b=-", "d=1"],
            "an unchanged object is not published"
        );
    }
}
