//! The keys that a change of a watched object concerns: the keys from before the change, and the keys from
//! after the change. A key is the name of a seed or of a namespace. A write that changes no content concerns
//! no key.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use futures::{
    StreamExt,
    stream::{BoxStream, iter},
};
use kube::{
    Api,
    runtime::{
        WatchStreamExt,
        reflector::{self, Lookup, ObjectRef, Store},
        watcher,
        watcher::Event,
    },
};
use runtime::client::apply::Object;

/// Names of the objects to reconcile.
pub type Keys = BTreeSet<String>;

/// A cache of all objects of a kind, and the keys that each change concerns. `slim` removes the fields that
/// the cache must not hold.
pub fn cache<K>(
    api: Api<K>,
    config: watcher::Config,
    slim: fn(&mut K),
    keys: impl Fn(&K) -> Keys + Send + 'static,
) -> (Store<K>, BoxStream<'static, String>)
where
    K: Object + Lookup<DynamicType = ()> + Sync,
{
    let (store, writer) = reflector::store();
    let mut changes = Changes::new(keys);
    let events = watcher(api, config)
        .default_backoff()
        .modify(slim)
        .reflect(writer);
    let concerned = events.flat_map(move |event| {
        // The watch logs its errors and continues.
        iter(event.map(|event| changes.concerned(&event)).unwrap_or_default())
    });
    (store, concerned.boxed())
}

/// Drops the field that no controller reads and that is often the largest.
pub fn without_managed_fields<K: Object>(object: &mut K) {
    object.meta_mut().managed_fields = None;
}

/// Keys and content of all objects of one kind, as last seen.
struct Changes<K: Object> {
    /// Keys of an object.
    keys: Box<dyn Fn(&K) -> Keys + Send>,
    before: HashMap<ObjectRef<K>, (Keys, u64)>,
    /// The objects of a new list, until the list is complete.
    listed: HashSet<ObjectRef<K>>,
    /// Keys of changes in a new list. The cache shows the list only when the list is complete.
    pending: Keys,
}

impl<K: Object> Changes<K> {
    /// Follows objects with these keys.
    fn new(keys: impl Fn(&K) -> Keys + Send + 'static) -> Self {
        Self {
            keys: Box::new(keys),
            before: HashMap::new(),
            listed: HashSet::new(),
            pending: Keys::new(),
        }
    }

    /// The keys that this event concerns.
    fn concerned(&mut self, event: &Event<K>) -> Keys {
        match event {
            Event::Apply(object) => self.is(object),
            Event::InitApply(object) => {
                self.listed.insert(ObjectRef::from_obj(object));
                let keys = self.is(object);
                self.pending.extend(keys);
                Keys::new()
            }
            Event::Delete(object) => self.is_gone(&ObjectRef::from_obj(object)),
            Event::Init => {
                self.listed.clear();
                Keys::new()
            }
            // Objects that were deleted while the watch was interrupted.
            Event::InitDone => {
                let gone = self.before.keys().filter(|key| !self.listed.contains(key));
                let gone: Vec<_> = gone.cloned().collect();
                let mut keys = std::mem::take(&mut self.pending);
                keys.extend(gone.iter().flat_map(|key| self.is_gone(key)));
                keys
            }
        }
    }

    fn is(&mut self, object: &K) -> Keys {
        let (keys, hash) = ((self.keys)(object), content(object));
        let key = ObjectRef::from_obj(object);
        let before = self.before.insert(key, (keys.clone(), hash));
        match before {
            Some((_, before)) if before == hash => Keys::new(),
            Some((before, _)) => before.into_iter().chain(keys).collect(),
            None => keys,
        }
    }

    fn is_gone(&mut self, key: &ObjectRef<K>) -> Keys {
        self.before.remove(key).map(|(keys, _)| keys).unwrap_or_default()
    }
}

/// A hash of an object without its resource version.
fn content<K: Object>(object: &K) -> u64 {
    let mut object = object.clone();
    object.meta_mut().resource_version = None;
    let mut hasher = DefaultHasher::new();
    // An object from an API can always be written as JSON.
    serde_json::to_string(&object)
        .unwrap_or_default()
        .hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::{Shoot, ShootSpec};
    use serde_json::json;

    use super::*;
    use crate::controller_registration::need::seeds_of;

    fn shoot(version: &str, spec: &str, status: &str) -> Shoot {
        let spec = ShootSpec {
            seed_name: Some(spec.into()),
            ..ShootSpec::default()
        };
        let mut shoot = Shoot::new("web", spec);
        shoot.metadata.resource_version = Some(version.into());
        shoot.status = serde_json::from_value(json!({"seedName": status})).unwrap();
        shoot
    }

    fn named(seeds: &[&str]) -> Keys {
        seeds.iter().map(|&seed| seed.to_owned()).collect()
    }

    #[test]
    fn a_change_concerns_where_it_was_and_where_it_is() {
        let mut changes = Changes::new(seeds_of);
        let mut on = |event| changes.concerned(&event);
        assert_eq!(on(Event::Apply(shoot("1", "a", "a"))), named(&["a"]));
        assert_eq!(on(Event::Apply(shoot("2", "a", "a"))), named(&[]), "nothing new");
        assert_eq!(on(Event::Apply(shoot("3", "b", "a"))), named(&["a", "b"]));
        assert_eq!(
            on(Event::Apply(shoot("4", "b", "b"))),
            named(&["a", "b"]),
            "it has left a"
        );
        assert_eq!(on(Event::Delete(shoot("5", "b", "b"))), named(&["b"]));
    }

    #[test]
    fn what_went_while_nobody_watched_is_noticed() {
        let mut changes = Changes::new(seeds_of);
        changes.concerned(&Event::Apply(shoot("1", "a", "a")));
        assert_eq!(changes.concerned(&Event::Init), named(&[]));
        let again = Event::InitApply(shoot("1", "a", "a"));
        assert_eq!(changes.concerned(&again), named(&[]));
        assert_eq!(changes.concerned(&Event::InitDone), named(&[]), "still there");
        assert_eq!(changes.concerned(&Event::Init), named(&[]));
        assert_eq!(changes.concerned(&Event::InitDone), named(&["a"]));
    }

    #[test]
    fn a_change_in_a_new_list_is_reported_when_the_cache_shows_the_list() {
        let mut changes = Changes::new(seeds_of);
        changes.concerned(&Event::Apply(shoot("1", "a", "a")));
        changes.concerned(&Event::Init);
        let moved = Event::InitApply(shoot("2", "b", "b"));
        assert_eq!(changes.concerned(&moved), named(&[]));
        assert_eq!(changes.concerned(&Event::InitDone), named(&["a", "b"]));
        changes.concerned(&Event::Init);
        changes.concerned(&Event::InitApply(shoot("2", "b", "b")));
        assert_eq!(changes.concerned(&Event::InitDone), named(&[]), "nothing new");
    }
}
