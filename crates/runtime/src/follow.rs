//! Follows all objects of one kind, for agents that make something so as it follows from them.
//!
//! A list counts when it has been read to its end. One that breaks off, or that cannot be read at all, is not
//! an empty one: what was known before stays (I4).

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use futures::{StreamExt, pin_mut};
use kube::{
    Api, Resource, ResourceExt,
    runtime::{WatchStreamExt, watcher, watcher::Event},
};
use tokio::sync::watch;
use tracing::warn;

use crate::wait::Watched;

/// What is known, by the objects' names; none before the first list.
pub type Known<V> = Option<Arc<BTreeMap<String, V>>>;

/// What is known, and a list that is being read.
#[derive(Debug)]
pub struct Kept<V> {
    known: Option<BTreeMap<String, V>>,
    arriving: BTreeMap<String, V>,
}

impl<V> Default for Kept<V> {
    fn default() -> Self {
        Self {
            known: None,
            arriving: BTreeMap::new(),
        }
    }
}

/// Follows what `read` makes of the objects, for ever. An object of which it makes nothing is not there.
/// Where they cannot be listed or watched, nothing is told: what is known stays.
pub async fn follow<K, V>(
    objects: Api<K>,
    config: watcher::Config,
    read: impl Fn(&K) -> Option<V>,
    sender: watch::Sender<Known<V>>,
) where
    K: Watched + Resource<DynamicType = ()>,
    V: Clone + Debug + PartialEq,
{
    let mut kept = Kept::default();
    let mut away = false;
    // The list is read with quorum (the default): an API server that is behind must not make an object
    // disappear.
    let events = watcher(objects, config).default_backoff();
    pin_mut!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                away = false;
                if let Some(known) = kept.take(event, &read) {
                    sender.send_replace(Some(Arc::new(known.clone())));
                }
            }
            // Once, not at each try: a move takes a while.
            Err(error) if !away => {
                away = true;
                let kind = K::plural(&());
                warn!(%error, %kind, "they cannot be read; everything stays as it is");
            }
            Err(_) => {}
        }
    }
}

impl<V: PartialEq> Kept<V> {
    /// Takes what a watch says. Gives what is known if that has changed.
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

    /// What is known; none before the first list.
    #[must_use]
    pub fn known(&self) -> Option<&BTreeMap<String, V>> {
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

    fn take(kept: &mut Kept<String>, event: Event<ConfigMap>) -> Option<Vec<String>> {
        let value = |object: &ConfigMap| object.data.as_ref()?.get("value").filter(|v| *v != "-").cloned();
        let known = kept.take(event, value)?;
        Some(
            known
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
        )
    }

    #[test]
    fn a_list_counts_when_it_is_complete_and_changes_are_told_once() {
        let mut kept = Kept::default();
        let mut take = |event| take(&mut kept, event);
        // What is said before the first list is not all.
        assert_eq!(take(Event::Apply(object("a", "1"))), None);
        assert_eq!(take(Event::Init), None);
        assert_eq!(take(Event::InitApply(object("a", "1"))), None);
        assert_eq!(take(Event::InitApply(object("b", "-"))), None);
        assert_eq!(take(Event::InitDone).unwrap(), ["a=1"]);
        // One that breaks off.
        assert_eq!(take(Event::Init), None);
        assert_eq!(take(Event::Apply(object("a", "1"))), None);
        assert_eq!(take(Event::Apply(object("c", "3"))).unwrap(), ["a=1", "c=3"]);
        assert_eq!(take(Event::Delete(object("d", "4"))), None);
        assert_eq!(take(Event::Apply(object("c", "-"))).unwrap(), ["a=1"]);
        assert_eq!(take(Event::Delete(object("a", "1"))).unwrap(), [""; 0]);
    }
}
