//! A single watch and a single store of all objects of a kind, for all controllers of a process.
//!
//! Each subscriber has a queue of its own, in which an object waits once. The shared reflector of kube holds
//! every change for the slowest subscriber, stops the watch when the buffer is full, and reports no deletion.
//!
//! | event | reported to each subscriber |
//! |---|---|
//! | an object is created, changed or deleted | the object |
//! | a list has ended, first or after an interruption | all objects, and the objects that have vanished |
//! | a controller subscribes after the list | all objects, to this subscriber |

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use futures::{Stream, StreamExt as _, stream};
use kube::{
    Api, ResourceExt as _,
    runtime::{
        Controller, WatchStreamExt as _,
        reflector::{self, ObjectRef, Store, store::Writer},
        watcher,
        watcher::Event,
    },
};
use tokio::sync::watch;
use tracing::warn;

use super::{
    pending_objects::PendingObjects,
    store_changes::{Change, apply_to_store, references, waking_objects},
};
use crate::{Error, Result, client::apply::Object};

/// A watch of all objects of a kind, with one store and any number of subscribers. Clones share the watch.
#[derive(Clone)]
pub struct SharedWatch<K: Object + Sync>(Arc<Shared<K>>);

struct Shared<K: Object + Sync> {
    api: Api<K>,
    config: watcher::Config,
    trim: Box<dyn Fn(&mut K) + Send + Sync>,
    store: Store<K>,
    /// Held by the caller that runs the watch.
    writer: tokio::sync::Mutex<Writer<K>>,
    subscribers: Mutex<Vec<Weak<PendingObjects<K>>>>,
    /// Whether a list has ended, and the watch has run since. The store of kube wakes a single waiter only.
    is_listed: watch::Sender<bool>,
}

impl<K: Object + Sync> SharedWatch<K> {
    /// A watch that begins with [`Self::run`]. `trim` removes the fields that the store must not hold, before
    /// an object is stored. `metadata.managedFields` is never stored.
    pub fn new(api: Api<K>, config: watcher::Config, trim: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        let (store, writer) = reflector::store();
        Self(Arc::new(Shared {
            api,
            config,
            trim: Box::new(trim),
            store,
            writer: tokio::sync::Mutex::new(writer),
            subscribers: Mutex::default(),
            is_listed: watch::Sender::new(false),
        }))
    }

    /// The store of all objects.
    #[must_use]
    pub fn store(&self) -> Store<K> {
        self.0.store.clone()
    }

    /// Runs the watch, without end. Of several callers a single caller runs the watch. If the future of this
    /// caller is dropped, the next caller begins with a list. So each controller of the objects can run the
    /// watch beside the controller's own work, and no task has to be detached.
    pub async fn run(&self) -> Infallible {
        let shared = &self.0;
        let mut writer = shared.writer.lock().await;
        let _end = EndOfRun(&shared.is_listed);
        let mut events = watcher(shared.api.clone(), shared.config.clone())
            .default_backoff()
            .boxed();
        let mut is_interrupted = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    // Each attempt begins with `Init`, also an attempt that fails.
                    is_interrupted &= matches!(event, Event::Init);
                    shared.apply(&mut writer, event);
                }
                // Logged once, not at each attempt.
                Err(error) if !is_interrupted => {
                    is_interrupted = true;
                    let kind = K::plural(&());
                    warn!(%error, "{kind} cannot be listed or watched; the last known state stays in use");
                }
                Err(_) => {}
            }
        }
        // The stream of a watch has no end.
        std::future::pending().await
    }

    /// Runs `work`, and the watch beside `work`.
    pub async fn run_beside<T>(&self, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            never = self.run() => match never {},
        }
    }

    /// Waits until all objects were listed once.
    ///
    /// # Errors
    /// The watch has ended.
    pub async fn wait_until_ready(&self) -> Result<()> {
        let mut is_listed = self.0.is_listed.subscribe();
        let listed = is_listed.wait_for(|is_listed| *is_listed).await;
        listed.map_err(|_| Error::transient(format!("the watch of {} has ended", K::plural(&()))))?;
        Ok(())
    }

    /// The changes of all objects from now on, after all objects. An object that has changed several times
    /// before the subscriber reads the change is reported once.
    pub fn subscribe(&self) -> impl Stream<Item = Change<K>> + Send + use<K> {
        let pending = Arc::<PendingObjects<K>>::default();
        let mut subscribers = self.0.subscribers();
        subscribers.retain(|subscriber| subscriber.strong_count() > 0);
        subscribers.push(Arc::downgrade(&pending));
        // Behind the lock of the subscribers: a change that the store does not show yet is reported later.
        if *self.0.is_listed.borrow() {
            pending.add(&references(&self.0.store));
        }
        drop(subscribers);
        let store = self.0.store.clone();
        stream::unfold((pending, store), |(pending, store)| async move {
            let reference = pending.next().await;
            let object = store.get(&reference);
            Some((Change { reference, object }, (pending, store)))
        })
    }

    /// A controller of the objects that is woken only when the hash from `fingerprint` has changed. So the
    /// controller's own status writes neither wake the controller nor reset the back-off. `None` always
    /// wakes.
    pub fn controller(&self, fingerprint: impl Fn(&K) -> Option<u64> + Send + 'static) -> Controller<K> {
        self.controller_on(waking_objects(self.subscribe(), fingerprint))
    }

    /// A controller of the objects that is woken by `changed`.
    pub fn controller_on(&self, changed: impl Stream<Item = ObjectRef<K>> + Send + 'static) -> Controller<K> {
        Controller::for_stream(stream::pending(), self.store()).reconcile_on(changed)
    }
}

impl<K: Object + Sync> Shared<K> {
    /// Takes an event into the store, and reports the changed objects.
    fn apply(&self, writer: &mut Writer<K>, mut event: Event<K>) {
        if let Event::Apply(object) | Event::InitApply(object) | Event::Delete(object) = &mut event {
            object.managed_fields_mut().clear();
            (self.trim)(object);
        }
        let changed = apply_to_store(writer, &event);
        let is_list = matches!(event, Event::InitDone);
        if is_list || !changed.is_empty() {
            self.report(&changed, is_list);
        }
    }

    fn report(&self, changed: &[Arc<ObjectRef<K>>], is_list: bool) {
        let mut subscribers = self.subscribers();
        subscribers.retain(|subscriber| {
            let pending = subscriber.upgrade();
            if let Some(pending) = &pending {
                pending.add(changed);
            }
            pending.is_some()
        });
        // Last, so that a subscriber can read the whole list from its changes after `wait_until_ready`.
        if is_list {
            self.is_listed.send_replace(true);
        }
    }

    fn subscribers(&self) -> MutexGuard<'_, Vec<Weak<PendingObjects<K>>>> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a run of the watch. The store may be old until the next run has listed the objects.
struct EndOfRun<'a>(&'a watch::Sender<bool>);

impl Drop for EndOfRun<'_> {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

#[cfg(test)]
#[path = "shared_watch_tests.rs"]
mod tests;
