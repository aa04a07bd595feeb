//! Follows all objects of one kind, for agents that derive state from these objects.
//!
//! A list counts only when the list has been read to the end. A list that breaks off or fails is not an empty
//! list: the last known objects stay (I4).

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use futures::{StreamExt, pin_mut};
use kube::{
    Api, Resource, ResourceExt,
    runtime::{WatchStreamExt, watcher, watcher::Event},
};
use tokio::sync::watch;
use tracing::warn;

use crate::client::wait::Watched;

/// The known values by object name; `None` before the first complete list.
pub type Known<V> = Option<Arc<BTreeMap<String, V>>>;

/// The known values, and a list that is still being read.
#[derive(Debug)]
pub struct InformerStore<V> {
    known: Option<BTreeMap<String, V>>,
    arriving: BTreeMap<String, V>,
}

impl<V> Default for InformerStore<V> {
    fn default() -> Self {
        Self {
            known: None,
            arriving: BTreeMap::new(),
        }
    }
}

/// Follows the values that `read` derives from the objects, without end. An object for which `read` returns
/// `None` counts as absent. While the objects cannot be listed or watched, `sender` reports no change: the
/// known values stay.
pub async fn follow<K, V>(
    objects: Api<K>,
    config: watcher::Config,
    read: impl Fn(&K) -> Option<V>,
    sender: watch::Sender<Known<V>>,
) where
    K: Watched + Resource<DynamicType = ()>,
    V: Clone + Debug + PartialEq,
{
    let mut store = InformerStore::default();
    let mut away = false;
    // The list is read with quorum (the default): an API server that is behind must not make an object
    // disappear.
    let events = watcher(objects, config).default_backoff();
    pin_mut!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                away = false;
                if let Some(known) = store.take(event, &read) {
                    sender.send_replace(Some(Arc::new(known.clone())));
                }
            }
            // Log once, not at each try: a move takes a while.
            Err(error) if !away => {
                away = true;
                let kind = K::plural(&());
                warn!(%error, "{kind} cannot be listed or watched; the last known state stays in use");
            }
            Err(_) => {}
        }
    }
}

impl<V: PartialEq> InformerStore<V> {
    /// Takes an event of the watch. Returns the known values if the event changed the values.
    pub fn take<K: Resource>(
        &mut self,
        event: Event<K>,
        read: impl Fn(&K) -> Option<V>,
    ) -> Option<&BTreeMap<String, V>> {
        let changed = match event {
            Event::Init => {
                self.arriving = BTreeMap::new();
                false
            }
            Event::InitApply(object) => {
                if let Some(value) = read(&object) {
                    self.arriving.insert(object.name_any(), value);
                }
                false
            }
            Event::InitDone => {
                let complete = Some(std::mem::take(&mut self.arriving));
                let changed = self.known != complete;
                self.known = complete;
                changed
            }
            Event::Apply(object) => self.set(object.name_any(), read(&object)),
            Event::Delete(object) => self.set(object.name_any(), None),
        };
        self.known.as_ref().filter(|_| changed)
    }

    /// The known values; `None` before the first complete list.
    #[must_use]
    pub fn known_values(&self) -> Option<&BTreeMap<String, V>> {
        self.known.as_ref()
    }

    fn set(&mut self, name: String, value: Option<V>) -> bool {
        let Some(known) = &mut self.known else {
            return false;
        };
        match value {
            Some(value) if known.get(&name) == Some(&value) => false,
            Some(value) => {
                known.insert(name, value);
                true
            }
            None => known.remove(&name).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    use super::*;

    fn object(name: &str, value: &str) -> ConfigMap {
        serde_json::from_value(json!({"metadata": {"name": name}, "data": {"value": value}})).unwrap()
    }

    fn take(store: &mut InformerStore<String>, event: Event<ConfigMap>) -> Option<Vec<String>> {
        let value = |object: &ConfigMap| object.data.as_ref()?.get("value").filter(|v| *v != "-").cloned();
        let known = store.take(event, value)?;
        Some(
            known
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
        )
    }

    #[test]
    fn a_list_counts_when_it_is_complete_and_changes_are_told_once() {
        let mut store = InformerStore::default();
        let mut take = |event| take(&mut store, event);
        // Events before the first list are not the complete state.
        assert_eq!(take(Event::Apply(object("a", "1"))), None);
        assert_eq!(take(Event::Init), None);
        assert_eq!(take(Event::InitApply(object("a", "1"))), None);
        assert_eq!(take(Event::InitApply(object("b", "-"))), None);
        assert_eq!(take(Event::InitDone).unwrap(), ["a=1"]);
        // A second list that breaks off.
        assert_eq!(take(Event::Init), None);
        assert_eq!(take(Event::Apply(object("a", "1"))), None);
        assert_eq!(take(Event::Apply(object("c", "3"))).unwrap(), ["a=1", "c=3"]);
        assert_eq!(take(Event::Delete(object("d", "4"))), None);
        assert_eq!(take(Event::Apply(object("c", "-"))).unwrap(), ["a=1"]);
        assert_eq!(take(Event::Delete(object("a", "1"))).unwrap(), [""; 0]);
    }
}
