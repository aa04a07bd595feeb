//! Writes that have left, and how the clean end of a lock waits for them.
//!
//! Dropping a request takes nothing back: the API server may carry it out a moment later. So a lock that is given back
//! right after its work was dropped could be another's when the write arrives. Hence every write is counted until it is
//! answered, and a write that has left is not dropped with its caller: it is kept here, and the election polls it. Reads
//! change nothing and are dropped; that includes watches, which would never end. A write is answered with the head of its
//! response, not with its body.
//!
//! Work is one future, but what it is made of may run elsewhere (kube's controllers abort tasks when they are dropped, which
//! then end a moment later): so writes may also lose their callers after the work was dropped. They are counted by then.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::task::AtomicWaker;
use tokio::time::{Instant, Timeout, timeout, timeout_at};

use crate::Held;

/// How long a write is kept after its caller was dropped. A process has 10 s to end, of which giving back takes its part.
pub(crate) const FINISH_WITHIN: Duration = Duration::from_secs(3);

/// A write without its caller, and how long it may last.
type Alone = (Instant, BoxFuture<'static, ()>);

/// The writes of one lock.
#[derive(Default)]
pub(crate) struct UnderWay {
    count: Arc<Count>,
    /// What has lost its caller since the last look.
    alone: Mutex<Vec<Alone>>,
}

/// How many are not answered; with or without a caller.
#[derive(Default)]
struct Count {
    writes: AtomicUsize,
    changed: AtomicWaker,
}

/// One of them.
struct Counted(Arc<Count>);

impl Counted {
    fn new(count: &Arc<Count>) -> Self {
        count.writes.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.writes.fetch_sub(1, Ordering::SeqCst);
        self.0.changed.wake();
    }
}

impl UnderWay {
    fn keep(&self, write: BoxFuture<'static, ()>) {
        self.alone().push((Instant::now() + FINISH_WITHIN, write));
        self.count.changed.wake();
    }

    /// What has lost its caller; it is the caller's of this function from now on.
    pub(crate) fn take(&self) -> Vec<Alone> {
        std::mem::take(&mut *self.alone())
    }

    fn alone(&self) -> MutexGuard<'_, Vec<Alone>> {
        self.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for UnderWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnderWay").finish_non_exhaustive()
    }
}

/// A write as its caller sees it. When the caller drops it after it was begun, it is kept for as long as the lock is held.
pub(crate) struct Write<F: Future<Output: Send> + Send + 'static> {
    held: Held,
    request: Option<Pin<Box<F>>>,
    /// There is one from the first step on.
    counted: Option<Counted>,
}

impl<F: Future<Output: Send> + Send + 'static> Write<F> {
    pub(crate) fn new(held: Held, request: F) -> Self {
        Self {
            held,
            request: Some(Box::pin(request)),
            counted: None,
        }
    }
}

impl<F: Future<Output: Send> + Send + 'static> Future for Write<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        if self.counted.is_none() {
            let counted = Counted::new(&self.held.under_way().count);
            // Looked at after it was counted: either it is not begun, or the end waits for it. The guard around it tells.
            if !self.held.is_valid() {
                return Poll::Pending;
            }
            self.counted = Some(counted);
        }
        let Some(request) = &mut self.request else {
            return Poll::Pending;
        };
        let answer = request.as_mut().poll(context);
        if answer.is_ready() {
            self.request = None;
        }
        answer
    }
}

impl<F: Future<Output: Send> + Send + 'static> Drop for Write<F> {
    fn drop(&mut self) {
        let (Some(request), Some(counted)) = (self.request.take(), self.counted.take()) else {
            return;
        };
        if self.held.in_time() {
            let write = async move {
                let _counted = counted;
                drop(request.await);
            };
            self.held.under_way().keep(Box::pin(write));
        }
    }
}

/// Polls the writes that have no caller any more, while the lock is held.
pub(crate) struct Finishing {
    held: Held,
    alone: FuturesUnordered<Timeout<BoxFuture<'static, ()>>>,
}

impl Finishing {
    pub(crate) fn new(held: Held) -> Self {
        Self {
            held,
            alone: FuturesUnordered::new(),
        }
    }

    /// Does what there is to do, while there may be more.
    pub(crate) async fn go_on(&mut self) -> Infallible {
        poll_fn(|context| {
            let _ = self.poll(context);
            Poll::Pending
        })
        .await
    }

    /// Waits until every write is answered; false if one is not, within [`FINISH_WITHIN`] or as long as the lock is held.
    pub(crate) async fn finish(&mut self) -> bool {
        let mut all = true;
        let finished = poll_fn(|context| {
            let answered = self.poll(context);
            all &= answered;
            let left = self.held.under_way().count.writes.load(Ordering::SeqCst);
            if left == 0 || !self.held.in_time() {
                Poll::Ready(left == 0)
            } else {
                Poll::Pending
            }
        });
        timeout(FINISH_WITHIN, finished).await.unwrap_or(false) && all
    }

    /// False if one was given up.
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let under_way = self.held.under_way();
        under_way.count.changed.register(context.waker());
        let more = under_way.take().into_iter();
        self.alone
            .extend(more.map(|(until, write)| timeout_at(until, write)));
        let mut all = true;
        // As for work: the clock first.
        while self.held.in_time() {
            match self.alone.poll_next_unpin(context) {
                Poll::Ready(Some(answered)) => all &= answered.is_ok(),
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        all
    }
}
