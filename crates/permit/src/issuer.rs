//! Who gives a right: extends it, closes it, waits for what is under way, and ends it.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use tokio::time::{Instant, Timeout, timeout, timeout_at};

use crate::clock::{Clock, Moment};
use crate::grant::Grant;
use crate::host_clock::Guarded;
use crate::permit::Permit;
use crate::under_way::FINISH_WITHIN;

/// Gives one right, which ends at the latest when this is dropped.
#[derive(Debug)]
pub struct Issuer {
    grant: Arc<Grant>,
    clock: Clock,
}

impl Issuer {
    /// A right that is good until `until` at first. `by` is what it comes from, such as
    /// `the lock garden/gardenlet`.
    ///
    /// Where the validity follows from the answer to a question, it must count from a moment before the
    /// question was sent: an answer may be held back, and others count from when they saw the question's
    /// effect.
    #[must_use]
    pub fn new(by: impl Into<String>, clock: Clock, until: Moment) -> Self {
        let grant = Arc::new(Grant::new(by.into(), clock.clone(), until));
        if let Some(host) = clock.host() {
            let guarded: Weak<dyn Guarded> = Arc::<Grant>::downgrade(&grant);
            host.watch(guarded);
        }
        Self { grant, clock }
    }

    /// The right that is given.
    #[must_use]
    pub fn permit(&self) -> Permit {
        Permit::of(Arc::clone(&self.grant))
    }

    /// The clock that the right is judged by.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// It is good until then. False when that comes too late: what had ended at some moment stays so.
    #[must_use]
    pub fn extend(&self, until: Moment) -> bool {
        self.grant.extend(until)
    }

    /// Until when it is good if it is not extended, for a timer.
    #[must_use]
    pub fn valid_until(&self) -> Instant {
        let left = self.grant.left();
        Instant::now() + left
    }

    /// Whether the right is there, be it only to finish what is under way.
    #[must_use]
    pub fn in_time(&self) -> bool {
        self.grant.in_time()
    }

    /// Nothing begins and no work goes on any more. What has left goes on until [`Issuer::end`].
    pub fn close(&self) {
        self.grant.close();
    }

    /// Ends it now, with everything that is under way.
    pub fn end(&self, why: &str) {
        self.grant.end(why);
    }

    /// Does what lost its caller, and waits for it. Make one as soon as permits are used, and poll it beside
    /// them.
    #[must_use]
    pub fn settling(&self) -> Settling {
        Settling {
            grant: Arc::clone(&self.grant),
            alone: FuturesUnordered::new(),
        }
    }
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.end("whoever gave it is gone");
    }
}

/// Polls the effects that have no caller any more, while the right is there.
pub struct Settling {
    grant: Arc<Grant>,
    alone: FuturesUnordered<Timeout<BoxFuture<'static, ()>>>,
}

impl Settling {
    /// Does what there is to do, while there may be more.
    pub async fn go_on(&mut self) -> Infallible {
        poll_fn(|context| {
            let _ = self.poll(context);
            Poll::Pending
        })
        .await
    }

    /// Waits until every effect is done; false if one is not, within [`FINISH_WITHIN`] or as long as the
    /// right is there.
    pub async fn settle(&mut self) -> bool {
        let mut all = true;
        let finished = poll_fn(|context| {
            let done = self.poll(context);
            all &= done;
            let left = self.grant.under_way.left();
            if left == 0 || !self.grant.in_time() {
                Poll::Ready(left == 0)
            } else {
                Poll::Pending
            }
        });
        timeout(FINISH_WITHIN, finished).await.unwrap_or(false) && all
    }

    /// False if one was given up.
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let more = self.grant.under_way.more(context.waker()).into_iter();
        self.alone
            .extend(more.map(|(until, work)| timeout_at(until, work)));
        let mut all = true;
        // As for work: the clock first.
        while self.grant.in_time() {
            match self.alone.poll_next_unpin(context) {
                Poll::Ready(Some(done)) => all &= done.is_ok(),
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        all
    }
}
