//! The right to act, as held by work.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio::time::{Instant, sleep_until};

use crate::grant::{Grant, NotPermitted};

/// A day: distance of the alarm for a right that does not end by time. The alarm is set again then.
const FAR: Duration = Duration::from_secs(24 * 60 * 60);

/// The right to act; cheap to clone. A right ends once and is never revived.
#[derive(Clone, Debug)]
pub struct Permit {
    /// Valid while all of these grants are valid. Empty: [`Permit::sole`].
    grants: Arc<[Arc<Grant>]>,
}

impl Permit {
    pub(crate) fn from_grant(grant: Arc<Grant>) -> Self {
        Self {
            grants: [grant].into(),
        }
    }

    /// The right of a process without competitors, and of work that must run without any other right: the
    /// election itself, a sidecar, a tool for people. This right never ends. The list in `xtask` contains
    /// every use outside tests.
    #[must_use]
    pub fn sole(reason: &'static str) -> Self {
        let _ = reason; // the reader of the call needs the reason
        Self { grants: [].into() }
    }

    /// Valid while both permits are valid: the earliest deadline, and the first end of any.
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

    /// Whether work may be done at this moment. False at once in a process that was stopped and woken.
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

    /// The end of the validity without an extension, for a timer. (Only [`Permit::check`] is reliable: timers
    /// do not count the time of a suspended machine.) A day ahead where the right does not end by time.
    #[must_use]
    pub fn valid_until(&self) -> Instant {
        let left = self.grants.iter().map(|grant| grant.left()).min();
        // Read the clock after the remaining time, so that the permit is no longer valid at the returned
        // time.
        Instant::now() + left.unwrap_or(FAR).min(FAR)
    }

    /// Runs `work` while permitted. The clock is read before every step of the work. After the end the work
    /// is not polled again, and is dropped with this future. Work must not start detached tasks, because such
    /// tasks would continue after the end.
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
            // The alarm is reset only when the alarm fires: extensions are frequent, ends are rare.
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

    /// Whether all grants are valid, at least to finish effects under way.
    pub(crate) fn in_time(&self) -> bool {
        self.grants.iter().all(|grant| grant.in_time())
    }

    /// Waits until any grant is closed or ended.
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
