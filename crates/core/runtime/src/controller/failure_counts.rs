//! Consecutive failures of objects, for the back-off of the runner.
//!
//! A user creates and deletes any number of objects that fail, each under a new name. So the counts of
//! objects that the store does not have are dropped, and the number of present objects bounds the memory.

use std::collections::HashMap;

use kube::runtime::reflector::{ObjectRef, Store};

use crate::client::apply::Object;

/// Counts that are kept without a comparison with the store.
const KEPT_WITHOUT_COMPARISON: usize = 64;

/// The failures of each object since its last success.
pub(super) struct FailureCounts<K: Object> {
    /// Holds objects that fail, and few objects that are deleted.
    pub(super) counts: HashMap<ObjectRef<K>, usize>,
    objects: Store<K>,
    /// The number of counts at which the next comparison with the store follows.
    compare_at: usize,
}

impl<K: Object> FailureCounts<K> {
    pub(super) fn new(objects: Store<K>) -> Self {
        Self {
            counts: HashMap::new(),
            objects,
            compare_at: KEPT_WITHOUT_COMPARISON,
        }
    }

    /// Counts a failure, and returns the number of failures in a row.
    pub(super) fn add(&mut self, object: &K) -> usize {
        let count = self.counts.entry(ObjectRef::from_obj(object)).or_default();
        *count += 1;
        let failures = *count;
        if self.counts.len() > self.compare_at {
            self.drop_deleted();
        }
        failures
    }

    /// Drops the count of an object, after a success.
    pub(super) fn remove(&mut self, object: &K) {
        self.counts.remove(&ObjectRef::from_obj(object));
    }

    /// The next comparison follows after as many new objects as remain, so that a failure of one of many
    /// objects costs little.
    fn drop_deleted(&mut self) {
        let objects = &self.objects;
        self.counts.retain(|object, _| objects.get(object).is_some());
        self.compare_at = KEPT_WITHOUT_COMPARISON.max(2 * self.counts.len());
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::runtime::{reflector, watcher};

    use super::*;

    fn map(name: &str) -> ConfigMap {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.to_owned());
        map.metadata.namespace = Some("garden-dev".to_owned());
        map
    }

    /// A member creates Shoots that fail, and deletes the Shoots, under new names for a whole day.
    #[test]
    fn failures_of_deleted_objects_take_no_memory() {
        let (objects, mut writer) = reflector::store();
        let mut failures = FailureCounts::new(objects);
        let present = map("present");
        writer.apply_watcher_event(&watcher::Event::Apply(present.clone()));
        for number in 1..=10_000 {
            let object = map(&format!("o{number}"));
            writer.apply_watcher_event(&watcher::Event::Apply(object.clone()));
            assert_eq!(failures.add(&object), 1);
            assert_eq!(failures.add(&object), 2);
            writer.apply_watcher_event(&watcher::Event::Delete(object));
            assert_eq!(failures.add(&present), number);
            assert!(failures.counts.len() <= KEPT_WITHOUT_COMPARISON + 1);
        }
        failures.remove(&present);
        assert_eq!(failures.add(&present), 1);
    }

    #[test]
    fn each_object_that_fails_keeps_its_count() {
        let (objects, mut writer) = reflector::store();
        let mut failures = FailureCounts::new(objects);
        for round in 1..=3 {
            for number in 0..1000 {
                let object = map(&format!("o{number}"));
                writer.apply_watcher_event(&watcher::Event::Apply(object.clone()));
                assert_eq!(failures.add(&object), round);
            }
        }
        assert_eq!(failures.counts.len(), 1000);
    }
}
