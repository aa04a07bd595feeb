//! What has left and is not answered: the effects of one right.
//!
//! Dropping a request takes nothing back: its target may carry it out a moment later. So a right that is
//! passed on right after its work was dropped could be another's when the request arrives. Hence every effect
//! is counted until it is done, and one that has begun is not dropped with its caller: it is kept here, and
//! whoever issued the right polls it.
//!
//! Work is one future, but what it is made of may run elsewhere (kube's controllers abort tasks when they are
//! dropped, which then end a moment later): so effects may also lose their callers after the work was
//! dropped. They are counted by then.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use tokio::time::Instant;

/// How long an effect is kept after its caller was dropped. A process has 10 s to end, of which giving back
/// takes its part.
pub const FINISH_WITHIN: Duration = Duration::from_secs(3);

/// An effect without its caller, and how long it may last.
type Alone = (Instant, BoxFuture<'static, ()>);

/// The effects of one right.
#[derive(Default)]
pub(crate) struct UnderWay {
    /// How many are not done, with or without a caller.
    count: AtomicUsize,
    changed: AtomicWaker,
    /// What has lost its caller since the last look.
    alone: Mutex<Vec<Alone>>,
}

impl UnderWay {
    pub(crate) fn left(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// What has lost its caller; it is the caller's of this function from now on, who is woken for more.
    pub(crate) fn more(&self, waker: &Waker) -> Vec<Alone> {
        self.changed.register(waker);
        self.take()
    }

    pub(crate) fn take(&self) -> Vec<Alone> {
        std::mem::take(&mut *self.alone())
    }

    /// Keeps what has lost its caller.
    pub(crate) fn keep(&self, work: BoxFuture<'static, ()>) {
        self.alone().push((Instant::now() + FINISH_WITHIN, work));
        self.changed.wake();
    }

    fn alone(&self) -> MutexGuard<'_, Vec<Alone>> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of them, for one right; done when it is dropped.
pub(crate) struct One(Arc<UnderWay>);

impl One {
    pub(crate) fn new(under_way: &Arc<UnderWay>) -> Self {
        under_way.count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(under_way))
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
        self.0.changed.wake();
    }
}
