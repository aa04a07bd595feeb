//! The issuer of a right: extends the right, closes the right, waits for effects under way, and ends the
//! right.

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

/// Issues a single right. Dropping the issuer ends the right.
#[derive(Debug)]
pub struct Issuer {
    grant: Arc<Grant>,
    clock: Clock,
}

impl Issuer {
    /// A right that is valid until `until` at first. `by` is the source of the right, such as `the lock
    /// garden/gardenlet`.
    ///
    /// If the validity follows from the answer to a question, the validity must count from before the
    /// question was sent. An answer may be delayed, and a successor counts from when the successor saw the
    /// effect of the question.
    #[must_use]
    pub fn new(by: impl Into<String>, clock: Clock, until: Moment) -> Self {
        let grant = Arc::new(Grant::new(by.into(), clock.clone(), until));
        if let Some(host) = clock.host() {
            let guarded: Weak<dyn Guarded> = Arc::<Grant>::downgrade(&grant);
            host.watch(guarded);
        }
        Self { grant, clock }
    }

    /// The permit of this right.
    #[must_use]
    pub fn permit(&self) -> Permit {
        Permit::from_grant(Arc::clone(&self.grant))
    }

    /// The clock that decides about the end of the right.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Extends the right until `until`. False if the extension comes too late: an ended right stays ended.
    #[must_use]
    pub fn extend(&self, until: Moment) -> bool {
        self.grant.extend(until)
    }

    /// The end of the validity without an extension, for a timer.
    #[must_use]
    pub fn valid_until(&self) -> Instant {
        let left = self.grant.left();
        Instant::now() + left
    }

    /// Whether the right is valid, at least to finish effects under way.
    #[must_use]
    pub fn in_time(&self) -> bool {
        self.grant.in_time()
    }

    /// From here on no work begins or continues. Effects under way continue until [`Issuer::end`].
    pub fn close(&self) {
        self.grant.close();
    }

    /// Ends the right now, with all effects under way.
    pub fn end(&self, why: &str) {
        self.grant.end(why);
    }

    /// Finishes effects that lost the caller, and waits for these effects. Create the value as soon as
    /// permits are used, and poll the value beside the permits' work.
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

/// Polls the effects without a caller, while the right is valid.
pub struct Settling {
    grant: Arc<Grant>,
    alone: FuturesUnordered<Timeout<BoxFuture<'static, ()>>>,
}

impl Settling {
    /// Polls such effects for ever, because permits may produce further effects.
    pub async fn go_on(&mut self) -> Infallible {
        poll_fn(|context| {
            let _ = self.poll(context);
            Poll::Pending
        })
        .await
    }

    /// Waits until every effect is done. False if an effect is not done within [`FINISH_WITHIN`], or not
    /// before the end of the right.
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

    /// False if an effect was given up.
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        let more = self.grant.under_way.more(context.waker()).into_iter();
        self.alone
            .extend(more.map(|(until, work)| timeout_at(until, work)));
        let mut all = true;
        // As for work: check the clock first.
        while self.grant.in_time() {
            match self.alone.poll_next_unpin(context) {
                Poll::Ready(Some(done)) => all &= done.is_ok(),
                Poll::Ready(None) | Poll::Pending => break,
            }
        }
        all
    }
}
