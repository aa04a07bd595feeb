//! Watches of applied objects: a watch for each kind in each cluster, restricted to objects with the label. A
//! watch begins with the first need of the kind, and ends with the last.

mod entries;
mod event;
mod kind;

use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures::future::BoxFuture;
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::JoinSet,
};

pub use entries::State;
pub use event::{Event, Scope, Tell};
pub use kind::{KindWatch, Of};

use crate::kinds::Served;

/// Starts watches. Cheap to clone.
#[derive(Clone)]
pub struct Watcher {
    begun: UnboundedSender<BoxFuture<'static, ()>>,
    tell: Tell,
}

impl Watcher {
    /// Returns the starter of watches, and the future that runs the watches. Watches run only while that
    /// future is polled. `tell` receives the events; `tell` must not block.
    pub fn new(tell: Tell) -> (Self, impl Future<Output = ()> + Send) {
        let (begun, works) = unbounded_channel();
        (Self { begun, tell }, run(works))
    }
}

async fn run(mut begin: UnboundedReceiver<BoxFuture<'static, ()>>) {
    let mut running = JoinSet::new();
    loop {
        tokio::select! {
            next = begin.recv() => match next {
                Some(watch) => drop(running.spawn(watch)),
                None => return,
            },
            Some(_) = running.join_next(), if !running.is_empty() => {}
        }
    }
}

/// The watches of a single cluster.
pub struct Watches {
    watcher: Watcher,
    kinds: Mutex<Vec<(Arc<Served>, Weak<KindWatch>)>>,
}

impl Watches {
    /// Without watches at first.
    #[must_use]
    pub fn new(watcher: Watcher) -> Self {
        Self {
            watcher,
            kinds: Mutex::default(),
        }
    }

    /// The watch of a kind, begun now if necessary. The watch runs until the last returned `Arc` is dropped.
    #[must_use]
    pub fn watch_kind(&self, of: &Of) -> Arc<KindWatch> {
        let mut kinds = self.kinds.lock().unwrap_or_else(PoisonError::into_inner);
        let mut same = kinds.iter().filter(|(kind, _)| *kind == of.kind);
        if let Some(running) = same.find_map(|(_, watch)| watch.upgrade()) {
            return running;
        }
        kinds.retain(|(_, watch)| watch.strong_count() > 0);
        let kind = Arc::clone(&of.kind);
        let (watch, work) = KindWatch::new(of, Arc::clone(&self.watcher.tell));
        kinds.push((kind, Arc::downgrade(&watch)));
        // The receiver is dropped when the process ends.
        let _ = self.watcher.begun.send(work);
        watch
    }
}
