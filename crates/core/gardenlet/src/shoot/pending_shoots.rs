//! The Shoots that wait for a controller, between the shared watch and the controller. A channel would hold
//! each change: while all slots of the controller are taken, for example by flows that hang, the changes
//! would add up without a bound.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use api::gardencore::Shoot;
use futures::{Stream, stream};
use kube::runtime::watcher;
use tokio::sync::Notify;

/// Namespace and name.
type Key = (Option<String>, Option<String>);

/// A queue that holds each Shoot once, however often the Shoot changes. The number of Shoots bounds the
/// queue, and the watch never waits for the controller.
#[derive(Default)]
pub(super) struct PendingShoots {
    waiting: Mutex<Waiting>,
    added: Notify,
}

#[derive(Default)]
struct Waiting {
    order: VecDeque<Key>,
    names: HashSet<Key>,
}

impl PendingShoots {
    /// The Shoot has changed. The controller reads the Shoot later.
    pub(super) fn add(&self, shoot: &Shoot) {
        let metadata = &shoot.metadata;
        let key = (metadata.namespace.clone(), metadata.name.clone());
        let mut waiting = self.waiting();
        if waiting.names.insert(key.clone()) {
            waiting.order.push_back(key);
            drop(waiting);
            self.added.notify_one();
        }
    }

    /// The Shoots in the order of the first change, with the name alone: the controller takes the object from
    /// the store. For a single reader.
    pub(super) fn stream(
        self: Arc<Self>,
    ) -> impl Stream<Item = Result<Shoot, watcher::Error>> + Send + 'static {
        stream::unfold(self, |pending| async move {
            let shoot = pending.next_shoot().await;
            Some((Ok(shoot), pending))
        })
    }

    async fn next_shoot(&self) -> Shoot {
        loop {
            if let Some((namespace, name)) = self.take() {
                let mut shoot = Shoot::default();
                (shoot.metadata.namespace, shoot.metadata.name) = (namespace, name);
                return shoot;
            }
            // A Shoot that was added in between has left a notification.
            self.added.notified().await;
        }
    }

    fn take(&self) -> Option<Key> {
        let mut waiting = self.waiting();
        let key = waiting.order.pop_front()?;
        waiting.names.remove(&key);
        Some(key)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use futures::{FutureExt as _, StreamExt as _};

    use super::*;

    fn shoot(name: &str) -> Shoot {
        let mut shoot = Shoot::default();
        shoot.metadata.namespace = Some("garden-dev".into());
        shoot.metadata.name = Some(name.into());
        shoot
    }

    /// All slots of the controller are taken, and Shoots change.
    #[tokio::test]
    async fn a_shoot_that_changes_again_and_again_waits_once() {
        let pending = Arc::<PendingShoots>::default();
        for _ in 0..1000 {
            pending.add(&shoot("a"));
            pending.add(&shoot("b"));
        }
        assert_eq!(pending.waiting().order.len(), 2);
        let mut stream = Box::pin(Arc::clone(&pending).stream());
        for expected in ["a", "b"] {
            let read = stream.next().await.unwrap().unwrap();
            assert_eq!(read.metadata.name.as_deref(), Some(expected));
            assert_eq!(read.metadata.namespace.as_deref(), Some("garden-dev"));
        }
        assert!(stream.next().now_or_never().is_none(), "no Shoot waits");
        // A change after the controller has read the Shoot is not lost.
        pending.add(&shoot("a"));
        let read = stream.next().await.unwrap().unwrap();
        assert_eq!(read.metadata.name.as_deref(), Some("a"));
    }
}
