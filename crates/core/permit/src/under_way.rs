//! The effects of a right that have left the process and are not answered.
//!
//! Dropping a request does not undo the request: the target may carry the request out a moment later. If the
//! right were passed on right after the drop, the request could arrive while another process has the right.
//! Hence every effect is counted until done. An effect that has begun is not dropped with the caller: this
//! module keeps the effect, and the issuer of the right polls the effect.
//!
//! Work is a single future, but parts of the work may run elsewhere. Example: kube's controllers abort tasks
//! when dropped, and the tasks end a moment later. So effects may also lose the caller after the work was
//! dropped. Such effects are counted by then.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use tokio::time::Instant;

/// Time for which an effect is kept after the drop of the caller. A process has 10 s to end, and the release
/// of the lock takes a part of that time.
pub const FINISH_WITHIN: Duration = Duration::from_secs(3);

/// An effect without its caller, and the deadline.
type Alone = (Instant, BoxFuture<'static, ()>);

/// The effects of a right.
#[derive(Default)]
pub(crate) struct UnderWay {
    /// Number of unfinished effects, with or without a caller.
    count: AtomicUsize,
    changed: AtomicWaker,
    /// Effects that have lost the caller since the last call of `take`.
    alone: Mutex<Vec<Alone>>,
}

impl UnderWay {
    pub(crate) fn left(&self) -> usize {
        self.count.load(Ordering::SeqCst)
    }

    /// Takes the effects that have lost the caller. The caller of this function polls these effects from now
    /// on, and is woken for further effects.
    pub(crate) fn more(&self, waker: &Waker) -> Vec<Alone> {
        self.changed.register(waker);
        self.take()
    }

    pub(crate) fn take(&self) -> Vec<Alone> {
        std::mem::take(&mut *self.alone())
    }

    /// Keeps an effect that has lost the caller.
    pub(crate) fn keep(&self, work: BoxFuture<'static, ()>) {
        self.alone().push((Instant::now() + FINISH_WITHIN, work));
        self.changed.wake();
    }

    fn alone(&self) -> MutexGuard<'_, Vec<Alone>> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A counted effect of a right; dropping this value ends the count.
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
