//! The objects that wait for a subscriber of a [`SharedWatch`](super::SharedWatch). A channel would hold each
//! change. While all slots of a controller are taken, for example by flows that hang, the changes would add
//! up without a bound.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use kube::runtime::reflector::ObjectRef;
use tokio::sync::Notify;

use crate::client::apply::Object;

/// A queue that holds each object once, however often the object changes. The number of objects bounds the
/// queue, and the watch never waits for the subscriber.
pub(super) struct PendingObjects<K: Object> {
    waiting: Mutex<Waiting<K>>,
    added: Notify,
}

struct Waiting<K: Object> {
    order: VecDeque<Arc<ObjectRef<K>>>,
    known: HashSet<Arc<ObjectRef<K>>>,
}

impl<K: Object> Default for PendingObjects<K> {
    fn default() -> Self {
        Self {
            waiting: Mutex::new(Waiting {
                order: VecDeque::new(),
                known: HashSet::new(),
            }),
            added: Notify::new(),
        }
    }
}

impl<K: Object> PendingObjects<K> {
    /// The objects have changed. Wakes the subscriber also without a changed object: after the first list the
    /// subscriber has to learn that the store is ready.
    pub(super) fn add(&self, changed: &[Arc<ObjectRef<K>>]) {
        let mut waiting = self.waiting();
        for reference in changed {
            if waiting.known.insert(Arc::clone(reference)) {
                waiting.order.push_back(Arc::clone(reference));
            }
        }
        drop(waiting);
        self.added.notify_one();
    }

    /// Waits for the object that has changed first. For a single reader.
    pub(super) async fn next(&self) -> Arc<ObjectRef<K>> {
        loop {
            if let Some(reference) = self.take() {
                return reference;
            }
            // An object that was added in between has left a notification.
            self.added.notified().await;
        }
    }

    fn take(&self) -> Option<Arc<ObjectRef<K>>> {
        let mut waiting = self.waiting();
        let reference = waiting.order.pop_front()?;
        waiting.known.remove(&reference);
        Some(reference)
    }

    /// The number of objects that wait.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.waiting().order.len()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting<K>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
