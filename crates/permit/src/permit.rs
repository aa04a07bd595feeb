//! The right to act, as work holds it.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep_until};

use crate::grant::{Grant, NotPermitted};

/// A day: how far ahead an alarm is set for what does not end by time. It is set anew then.
const FAR: Duration = Duration::from_secs(24 * 60 * 60);

/// The right to act; cheap to clone. It ends once and does not come back.
#[derive(Clone, Debug)]
pub struct Permit {
    /// Good while all of these are. None: [`Permit::sole`].
    grants: Arc<[Arc<Grant>]>,
}

impl Permit {
    pub(crate) fn of(grant: Arc<Grant>) -> Self {
        Self {
            grants: [grant].into(),
        }
    }

    /// The right of a process that nobody competes with, and of what has to run without any other right: the
    /// election itself, a sidecar, a tool that a person calls. It never ends. Every use outside of tests is
    /// in the list of `xtask`.
    #[must_use]
    pub fn sole(reason: &'static str) -> Self {
        let _ = reason; // for the reader
        Self { grants: [].into() }
    }

    /// Good while both are: the earliest deadline, and the first end of any.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let own = self.grants.iter();
        let new = other
            .grants
            .iter()
            .filter(|new| !self.grants.iter().any(|own| Arc::ptr_eq(own, new)));
        Self {
            grants: own.chain(new).cloned().collect(),
        }
    }

    /// Whether something may be done at this moment. False at once in a process that was stopped and woken.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.grants.iter().all(|grant| grant.is_valid())
    }

    /// As [`Permit::is_valid`], for use with `?`.
    pub fn check(&self) -> Result<(), NotPermitted> {
        match self.grants.iter().find(|grant| !grant.is_valid()) {
            Some(grant) => Err(grant.refusal()),
            None => Ok(()),
        }
    }

    /// Until when it is good if it is not extended, for a timer. (What counts is [`Permit::check`]: a machine
    /// that is suspended loses time which its timers do not count.) A day ahead where it does not end by
    /// time.
    #[must_use]
    pub fn valid_until(&self) -> Instant {
        let left = self.grants.iter().map(|grant| grant.left()).min();
        // After what is left was read, so that it is not valid any more at that time.
        Instant::now() + left.unwrap_or(FAR).min(FAR)
    }

    /// Runs `work` while it is permitted. The clock is looked at before every step of the work; afterwards
    /// the work is not polled again and ends with this future. Work must not start detached tasks: they would
    /// go on (invariant 4).
    pub async fn guard<F: Future>(&self, work: F) -> Result<F::Output, NotPermitted> {
        let mut work = pin!(work);
        let mut ended = pin!(self.ended().fuse());
        let mut alarm = pin!(sleep_until(self.valid_until()));
        poll_fn(|context| {
            if let Err(refused) = self.check() {
                return Poll::Ready(Err(refused));
            }
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            if ended.as_mut().poll(context).is_ready()
                && let Err(refused) = self.check()
            {
                return Poll::Ready(Err(refused));
            }
            // The alarm is set anew only when it rings: extensions are many, ends are few.
            while alarm.as_mut().poll(context).is_ready() {
                if let Err(refused) = self.check() {
                    return Poll::Ready(Err(refused));
                }
                alarm.as_mut().reset(self.valid_until());
            }
            Poll::Pending
        })
        .await
    }

    pub(crate) fn grants(&self) -> &[Arc<Grant>] {
        &self.grants
    }

    /// Whether all of it is there, be it only to finish what is under way.
    pub(crate) fn in_time(&self) -> bool {
        self.grants.iter().all(|grant| grant.in_time())
    }

    /// When any of it is closed or ended.
    async fn ended(&self) {
        let mut over = FuturesUnordered::new();
        for grant in self.grants.iter() {
            over.push(grant.over.clone().cancelled_owned());
        }
        if over.next().await.is_none() {
            pending::<()>().await;
        }
    }
}
