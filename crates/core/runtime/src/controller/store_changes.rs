//! Reports a change of a watched object after the store shows the change.
//!
//! kube reports each object of a list at once, and the store shows the list after the last page. A controller
//! that is woken in between reconciles the object from before the outage. The wake after the last page would
//! be missing, and a fingerprint would filter the next event with the same content. So the objects of a list
//! are reported at the end of the list. Until then, only the store of kube holds the objects.

use std::{
    collections::HashMap,
    future::ready,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use futures::{Stream, StreamExt as _, stream};
use kube::{
    ResourceExt,
    runtime::{
        reflector::{ObjectRef, Store, store::Writer},
        watcher::{self, Event},
    },
};
use tracing::debug;

use crate::client::apply::Object;

/// A change of an object, as the store shows the object when the subscriber reads the change.
#[derive(Clone, Debug)]
pub struct Change<K: Object> {
    /// Name and namespace.
    pub reference: Arc<ObjectRef<K>>,
    /// The object; `None` after the deletion.
    pub object: Option<Arc<K>>,
}

/// Takes an event into the store, and returns the objects to report. After a list, these are all objects, and
/// the objects that have vanished during an interruption of the watch.
pub fn apply_to_store<K: Object>(writer: &mut Writer<K>, event: &Event<K>) -> Vec<Arc<ObjectRef<K>>> {
    match event {
        Event::Apply(object) | Event::Delete(object) => {
            writer.apply_watcher_event(event);
            vec![Arc::new(reference(object))]
        }
        Event::Init | Event::InitApply(_) => {
            writer.apply_watcher_event(event);
            Vec::new()
        }
        Event::InitDone => {
            let store = writer.as_reader();
            // Objects that have vanished are in the old state alone.
            let mut changed = references(&store);
            writer.apply_watcher_event(event);
            changed.retain(|reference| store.get(reference).is_none());
            changed.extend(references(&store));
            changed
        }
    }
}

/// The changes of the objects of a watch, with the store behind `writer`.
pub fn changes<K: Object + Sync>(
    events: impl Stream<Item = Result<Event<K>, watcher::Error>> + Send + 'static,
    mut writer: Writer<K>,
) -> impl Stream<Item = Change<K>> + Send {
    let store = writer.as_reader();
    events
        .flat_map(move |event| {
            let changed = match event {
                Ok(event) => apply_to_store(&mut writer, &event),
                Err(error) => {
                    let kind = K::plural(&());
                    debug!(%error, "{kind} cannot be listed or watched; the next attempt follows");
                    Vec::new()
                }
            };
            stream::iter(changed)
        })
        .map(move |reference| {
            let object = store.get(&reference);
            Change { reference, object }
        })
}

/// The objects that wake a controller: the objects whose hash from `fingerprint` has changed. `None` always
/// wakes.
pub(super) fn waking_objects<K: Object + Sync>(
    changes: impl Stream<Item = Change<K>> + Send + 'static,
    fingerprint: impl Fn(&K) -> Option<u64> + Send + 'static,
) -> impl Stream<Item = ObjectRef<K>> + Send + 'static {
    let mut last = HashMap::new();
    changes.filter_map(move |change| {
        let wakes = wakes(&mut last, &change, &fingerprint);
        ready(wakes.then(|| change.reference.as_ref().clone()))
    })
}

/// Whether a change wakes a controller. `last`: the last fingerprint of each object.
fn wakes<K: Object>(
    last: &mut HashMap<Arc<ObjectRef<K>>, u64>,
    change: &Change<K>,
    fingerprint: impl Fn(&K) -> Option<u64>,
) -> bool {
    // A controller does not reconcile an object that the store does not show.
    let Some(object) = &change.object else {
        last.remove(&change.reference);
        return false;
    };
    let Some(fingerprint) = fingerprint(object) else {
        return true;
    };
    // An object that was deleted and created again between two reads is a different object.
    let mut hasher = DefaultHasher::new();
    (object.uid(), fingerprint).hash(&mut hasher);
    let fingerprint = hasher.finish();
    last.insert(Arc::clone(&change.reference), fingerprint) != Some(fingerprint)
}

/// All objects in the store.
pub(super) fn references<K: Object>(store: &Store<K>) -> Vec<Arc<ObjectRef<K>>> {
    let objects = store.state();
    objects
        .iter()
        .map(|object| Arc::new(reference(object.as_ref())))
        .collect()
}

/// Name and namespace alone: a reference is kept by each subscriber.
fn reference<K: Object>(object: &K) -> ObjectRef<K> {
    let reference = ObjectRef::new(&object.name_any());
    match &object.meta().namespace {
        Some(namespace) => reference.within(namespace),
        None => reference,
    }
}

#[cfg(test)]
#[path = "store_changes_tests.rs"]
mod tests;
