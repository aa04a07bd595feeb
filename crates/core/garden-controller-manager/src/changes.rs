//! The keys that a change of a watched object concerns: the keys from before the change, and the keys from
//! after the change. A key is the name of a seed or of a namespace. A write that changes no content concerns
//! no key.

use std::{
    collections::{BTreeSet, HashMap},
    hash::Hash,
    mem,
    sync::Arc,
};

use futures::{
    StreamExt,
    stream::{BoxStream, iter, once, select},
};
use kube::{
    Api,
    api::ObjectMeta,
    runtime::{
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use runtime::{
    client::apply::Object,
    controller::{Change, SharedWatch, runner},
};

/// Names of the objects to reconcile.
pub type Keys = BTreeSet<String>;

/// A cache of all objects of a kind, and the keys that each change concerns.
pub fn cache<K>(
    api: Api<K>,
    config: watcher::Config,
    keys: impl Fn(&K) -> Keys + Send + 'static,
) -> (Store<K>, BoxStream<'static, String>)
where
    K: Object + Sync,
{
    cache_trimmed(api, config, |_| {}, keys)
}

/// The same, without the fields that `trim` removes. A change of these fields concerns no key.
pub fn cache_trimmed<K>(
    api: Api<K>,
    config: watcher::Config,
    trim: impl Fn(&mut K) + Send + Sync + 'static,
    keys: impl Fn(&K) -> Keys + Send + 'static,
) -> (Store<K>, BoxStream<'static, String>)
where
    K: Object + Sync,
{
    let watch = SharedWatch::new(api, config, trim);
    let (store, changed) = (watch.store(), concerned(&watch, keys, content));
    // The watch runs as long as the keys are read.
    (store, select(changed, once(run(watch))).boxed())
}

/// Part of a stream of keys that reports no key.
async fn run<K: Object + Sync>(watch: SharedWatch<K>) -> String {
    match watch.run().await {}
}

/// The keys that each change of the watched objects concerns. `content` hashes the fields that matter.
pub fn concerned<K>(
    watch: &SharedWatch<K>,
    keys: impl Fn(&K) -> Keys + Send + 'static,
    content: impl Fn(&K) -> u64 + Send + 'static,
) -> BoxStream<'static, String>
where
    K: Object + Sync,
{
    let mut changes = Changes::new(keys, content);
    watch
        .subscribe()
        .flat_map(move |change| iter(changes.concerned(&change)))
        .boxed()
}

/// Keeps only the identity of an object, and the time of a deletion.
pub fn trim_metadata(metadata: &mut ObjectMeta) {
    let whole = mem::take(metadata);
    *metadata = ObjectMeta {
        name: whole.name,
        namespace: whole.namespace,
        uid: whole.uid,
        resource_version: whole.resource_version,
        deletion_timestamp: whole.deletion_timestamp,
        ..ObjectMeta::default()
    };
}

/// A hash of any value, for the content of an object.
pub fn hash(value: impl Hash) -> u64 {
    runner::hash(value)
}

/// Keys and content of all objects of one kind, as last seen.
struct Changes<K: Object> {
    keys: Box<dyn Fn(&K) -> Keys + Send>,
    content: Box<dyn Fn(&K) -> u64 + Send>,
    before: HashMap<Arc<ObjectRef<K>>, (Keys, u64)>,
}

impl<K: Object> Changes<K> {
    /// Follows objects with these keys and this content.
    fn new(keys: impl Fn(&K) -> Keys + Send + 'static, content: impl Fn(&K) -> u64 + Send + 'static) -> Self {
        Self {
            keys: Box::new(keys),
            content: Box::new(content),
            before: HashMap::new(),
        }
    }

    /// The keys that this change concerns.
    fn concerned(&mut self, change: &Change<K>) -> Keys {
        let Some(object) = &change.object else {
            let gone = self.before.remove(&change.reference);
            return gone.map(|(keys, _)| keys).unwrap_or_default();
        };
        let (keys, hash) = ((self.keys)(object), (self.content)(object));
        let reference = Arc::clone(&change.reference);
        let before = self.before.insert(reference, (keys.clone(), hash));
        match before {
            Some((_, before)) if before == hash => Keys::new(),
            Some((before, _)) => before.into_iter().chain(keys).collect(),
            None => keys,
        }
    }
}

/// A hash of an object without its resource version.
fn content<K: Object>(object: &K) -> u64 {
    let mut object = object.clone();
    object.meta_mut().resource_version = None;
    // An object from an API can always be written as JSON.
    hash(serde_json::to_string(&object).unwrap_or_default())
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

    fn change(object: Option<Shoot>) -> Change<Shoot> {
        Change {
            reference: Arc::new(ObjectRef::new("web")),
            object: object.map(Arc::new),
        }
    }

    fn named(seeds: &[&str]) -> Keys {
        seeds.iter().map(|&seed| seed.to_owned()).collect()
    }

    #[test]
    fn a_change_concerns_where_it_was_and_where_it_is() {
        let mut changes = Changes::new(seeds_of, content);
        let mut on = |object| changes.concerned(&change(object));
        assert_eq!(on(Some(shoot("1", "a", "a"))), named(&["a"]));
        assert_eq!(on(Some(shoot("2", "a", "a"))), named(&[]), "nothing new");
        assert_eq!(on(Some(shoot("3", "b", "a"))), named(&["a", "b"]));
        assert_eq!(
            on(Some(shoot("4", "b", "b"))),
            named(&["a", "b"]),
            "it has left a"
        );
        assert_eq!(on(None), named(&["b"]));
        assert_eq!(on(None), named(&[]), "it is gone already");
        assert_eq!(
            on(Some(shoot("5", "b", "b"))),
            named(&["b"]),
            "it is created again"
        );
    }
}
