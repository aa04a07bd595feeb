//! The state that an issuer changes and the permits of the issuer read.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::clock::{Clock, Moment};
use crate::host_clock::{Guarded, Mark};
use crate::under_way::UnderWay;

/// A right with a longer validity ends by a loss and not by time, so a pause does not shorten the right.
const LONGEST_VALIDITY: Duration = Duration::from_secs(60 * 60);

/// The error of work after the end of the permit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{by} gives no right to act any more: {why}")]
pub struct NotPermitted {
    /// Source of the right, such as `the lock garden/gardenlet`.
    pub by: String,
    /// Reason of the end.
    pub why: String,
}

/// A right that was granted.
pub(crate) struct Grant {
    by: String,
    clock: Clock,
    origin: Moment,
    /// Nanoseconds after `origin`; zero is "ended".
    until: AtomicU64,
    /// The state of the host clock when this right was requested last; `None` where no host clock guards the
    /// right.
    asked: Mutex<Option<Mark>>,
    /// No work or effect may begin.
    closed: AtomicBool,
    why: OnceLock<String>,
    /// Cancelled when the right is closed or ended.
    pub(crate) over: CancellationToken,
    pub(crate) under_way: Arc<UnderWay>,
}

impl Grant {
    pub(crate) fn new(by: String, clock: Clock, until: Moment) -> Self {
        let grant = Self {
            by,
            origin: clock.now(),
            clock,
            until: AtomicU64::new(0),
            asked: Mutex::new(None),
            closed: AtomicBool::new(false),
            why: OnceLock::new(),
            over: CancellationToken::new(),
            under_way: Arc::default(),
        };
        grant.set(until);
        grant
    }

    /// Whether work may begin, or take a step.
    pub(crate) fn is_valid(&self) -> bool {
        !self.closed.load(Ordering::SeqCst) && self.in_time()
    }

    /// Whether the right is valid, at least to finish effects under way.
    pub(crate) fn in_time(&self) -> bool {
        if self.clock.now().since(self.origin) >= self.allowance() {
            return false;
        }
        let reason = self
            .clock
            .host()
            .zip(self.asked())
            .and_then(|(host, asked)| host.reason_to_end(asked));
        if let Some(reason) = reason {
            // Ends the right for good, because a later reading may show a smaller advance.
            self.end(reason);
        }
        reason.is_none()
    }

    /// The remaining validity without an extension.
    pub(crate) fn left(&self) -> Duration {
        self.allowance()
            .saturating_sub(self.clock.now().since(self.origin))
    }

    pub(crate) fn extend(&self, until: Moment) -> bool {
        if !self.in_time() {
            self.end("its time was over");
            return false;
        }
        self.set(until);
        self.in_time()
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        self.over.cancel();
    }

    pub(crate) fn end(&self, why: &str) {
        // The first reason stays.
        let _ = self.why.set(why.to_owned());
        self.until.store(0, Ordering::SeqCst);
        self.over.cancel();
        drop(self.under_way.take());
    }

    pub(crate) fn refusal(&self) -> NotPermitted {
        let why = match self.why.get() {
            Some(why) => why,
            None if self.in_time() => "it is being given back",
            None => "its time is over",
        };
        NotPermitted {
            by: self.by.clone(),
            why: why.to_owned(),
        }
    }

    fn set(&self, until: Moment) {
        let by_time = until.since(self.clock.now()) <= LONGEST_VALIDITY;
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner) = until.host().filter(|_| by_time);
        let after = u64::try_from(until.since(self.origin).as_nanos());
        self.until.store(after.unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    fn asked(&self) -> Option<Mark> {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn allowance(&self) -> Duration {
        Duration::from_nanos(self.until.load(Ordering::SeqCst))
    }
}

impl Guarded for Grant {
    fn end_after_a_pause(&self) {
        // `in_time` ends a right that is no longer valid.
        self.in_time();
    }
}

impl fmt::Debug for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.by)
    }
}
