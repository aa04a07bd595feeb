//! Proof of holding a lock, by the local monotonic clock.
//!
//! Nobody is told when a lock is lost by time: a process that is stopped (SIGSTOP, a frozen cgroup, a starved node) hears
//! nothing, and when it goes on, its timers and its work are ready at the same moment. Hence the guard here looks at the
//! clock *before* it lets the work take a step, and every request is looked at again when it leaves (`fence`).
//!
//! A clean end has two steps: first the proof is *closed* (no work goes on, no request leaves, and the lock is still renewed
//! while writes under way are finished, see `under_way`), and then it is *ended*. A loss ends it at once.
//!
//! What no lock of this kind can do: take back bytes that were given to the operating system, or notice a stop between
//! the look at the clock and the very next instruction. After a loss the distance of renew deadline and lease duration
//! covers requests under way (hence a lost lock is not given back), not a stop in that gap. The clock is the kernel's monotonic one: it counts the time of a stopped process,
//! but not that of a suspended virtual machine. Where that matters, writes need an owner check at their target.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::fence::Fence;
use crate::under_way::UnderWay;

/// The lock is not held any more: nothing may be done in its name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the lock {lock} is not held any more")]
pub struct NotHeld {
    /// `namespace/name` of the lock.
    pub lock: String,
}

/// Proof of holding; cheap to clone. It ends once and does not come back: a lock that is won again gives a new one.
#[derive(Clone, Debug)]
pub struct Held {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    lock: String,
    origin: Instant,
    /// Nanoseconds after `origin`; zero is "ended".
    until: AtomicU64,
    /// Nothing new may be done.
    closed: AtomicBool,
    /// Cancelled when it is closed or ended.
    over: CancellationToken,
    under_way: UnderWay,
}

impl Held {
    /// Held until `until` at first.
    pub(crate) fn new(lock: String, until: Instant) -> Self {
        let held = Self {
            shared: Arc::new(Shared {
                lock,
                origin: Instant::now(),
                until: AtomicU64::new(0),
                closed: AtomicBool::new(false),
                over: CancellationToken::new(),
                under_way: UnderWay::default(),
            }),
        };
        held.set(until);
        held
    }

    /// Whether work may go on at this moment. False at once in a process that was stopped and woken.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        !self.shared.closed.load(Ordering::SeqCst) && self.in_time()
    }

    /// As [`Held::is_valid`], for use with `?`.
    pub fn check(&self) -> Result<(), NotHeld> {
        if self.is_valid() {
            Ok(())
        } else {
            Err(self.not_held())
        }
    }

    /// `namespace/name` of the lock.
    #[must_use]
    pub fn lock(&self) -> &str {
        &self.shared.lock
    }

    /// Until when it holds if it is not renewed.
    #[must_use]
    pub fn valid_until(&self) -> Instant {
        self.shared.origin + self.allowance()
    }

    /// Runs `work` while the lock is held. The clock is looked at before every step of the work; on loss the work is not
    /// polled again and ends with this future. Work must not start detached tasks: they would go on (invariant 4).
    pub async fn guard<F: Future>(&self, work: F) -> Result<F::Output, NotHeld> {
        let mut work = pin!(work);
        let mut ended = pin!(self.shared.over.cancelled());
        let mut alarm = pin!(sleep_until(self.valid_until()));
        poll_fn(|context| {
            if !self.is_valid() {
                return Poll::Ready(Err(self.not_held()));
            }
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                return Poll::Ready(Ok(output));
            }
            if ended.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(self.not_held()));
            }
            // The alarm is set anew only when it rings: renewals are many, losses are few.
            while alarm.as_mut().poll(context).is_ready() {
                if !self.is_valid() {
                    return Poll::Ready(Err(self.not_held()));
                }
                alarm.as_mut().reset(self.valid_until());
            }
            Poll::Pending
        })
        .await
    }

    /// A layer for a kube client that is used by the work: a request leaves only while the lock is held. A request that
    /// was waiting (in a queue, or for a retry) when the process was stopped is refused with [`NotHeld`]. A write that has
    /// left is finished (for at most 3 s) before the lock is given back, also where the work that sent it was dropped.
    ///
    /// ```no_run
    /// # fn example(held: &lease::Held, config: kube::Config) -> kube::Result<kube::Client> {
    /// let client = kube::client::ClientBuilder::try_from(config)?.with_layer(&held.layer()).build();
    /// # Ok(client) }
    /// ```
    #[must_use]
    pub fn layer(&self) -> Fence {
        Fence::new(self.clone())
    }

    /// A renewal succeeded. False when it came too late: what was not held at some moment stays so.
    pub(crate) fn extend(&self, until: Instant) -> bool {
        if !self.in_time() {
            self.end();
            return false;
        }
        self.set(until);
        self.in_time()
    }

    /// Whether the lock is held, be it only to finish what is under way.
    pub(crate) fn in_time(&self) -> bool {
        self.shared.origin.elapsed() < self.allowance()
    }

    /// No work goes on and no request leaves any more. The lock is still held, until [`Held::end`].
    pub(crate) fn close(&self) {
        self.shared.closed.store(true, Ordering::SeqCst);
        self.shared.over.cancel();
    }

    /// Ends it now, with everything that is under way.
    pub(crate) fn end(&self) {
        self.shared.until.store(0, Ordering::SeqCst);
        self.shared.over.cancel();
        drop(self.shared.under_way.take());
    }

    pub(crate) fn under_way(&self) -> &UnderWay {
        &self.shared.under_way
    }

    pub(crate) fn not_held(&self) -> NotHeld {
        NotHeld {
            lock: self.shared.lock.clone(),
        }
    }

    fn set(&self, until: Instant) {
        let after = until.saturating_duration_since(self.shared.origin).as_nanos();
        let after = u64::try_from(after).unwrap_or(u64::MAX);
        self.shared.until.store(after, Ordering::SeqCst);
    }

    fn allowance(&self) -> Duration {
        Duration::from_nanos(self.shared.until.load(Ordering::SeqCst))
    }
}
