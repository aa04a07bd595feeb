//! Which seeds a change of an object concerns: those where it was, and those where it is now. An object that
//! has only been written, and says nothing new, concerns none.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    hash::{DefaultHasher, Hash, Hasher},
};

use kube::runtime::{reflector::ObjectRef, watcher::Event};
use runtime::apply::Object;

/// Names of seeds.
pub type Seeds = BTreeSet<String>;

/// What is remembered of objects of one kind.
pub struct Changes<K: Object> {
    /// Seeds of an object.
    seeds: Box<dyn Fn(&K) -> Seeds + Send>,
    before: HashMap<ObjectRef<K>, (Seeds, u64)>,
    /// While all are listed anew: those that were listed.
    listed: HashSet<ObjectRef<K>>,
}

impl<K: Object> Changes<K> {
    /// Of objects that concern these seeds.
    pub fn new(seeds: impl Fn(&K) -> Seeds + Send + 'static) -> Self {
        Self {
            seeds: Box::new(seeds),
            before: HashMap::new(),
            listed: HashSet::new(),
        }
    }

    /// The seeds that this event concerns.
    pub fn concerned(&mut self, event: &Event<K>) -> Seeds {
        match event {
            Event::Apply(object) => self.is(object),
            Event::InitApply(object) => {
                self.listed.insert(ObjectRef::from_obj(object));
                self.is(object)
            }
            Event::Delete(object) => self.is_gone(&ObjectRef::from_obj(object)),
            Event::Init => {
                self.listed.clear();
                Seeds::new()
            }
            // What went while nobody watched.
            Event::InitDone => {
                let gone = self.before.keys().filter(|key| !self.listed.contains(key));
                let gone: Vec<_> = gone.cloned().collect();
                gone.iter().flat_map(|key| self.is_gone(key)).collect()
            }
        }
    }

    fn is(&mut self, object: &K) -> Seeds {
        let (seeds, hash) = ((self.seeds)(object), content(object));
        let key = ObjectRef::from_obj(object);
        let before = self.before.insert(key, (seeds.clone(), hash));
        match before {
            Some((_, before)) if before == hash => Seeds::new(),
            Some((before, _)) => before.into_iter().chain(seeds).collect(),
            None => seeds,
        }
    }

    fn is_gone(&mut self, key: &ObjectRef<K>) -> Seeds {
        self.before
            .remove(key)
            .map(|(seeds, _)| seeds)
            .unwrap_or_default()
    }
}

/// A hash of all of an object but its version.
fn content<K: Object>(object: &K) -> u64 {
    let mut object = object.clone();
    object.meta_mut().resource_version = None;
    let mut hasher = DefaultHasher::new();
    // What cannot be written as JSON was not read from an API.
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

    fn named(seeds: &[&str]) -> Seeds {
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
}
