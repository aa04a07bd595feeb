//! How long a lock is held, and how often it is renewed.

use std::ops::Add;
use std::time::Duration;

/// A renewal must fit this many retry periods before its deadline, so that one late request does not lose the
/// lock.
const RETRIES_WITHIN_DEADLINE: f64 = 1.2;

/// The three durations of a lock. Every candidate of one lock should use the same ones; what other candidates
/// wait is what the holder wrote into the record, so that different ones are safe too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Others may take the lock when they have seen no change of it for this long. Whole seconds: the record
    /// carries seconds (`leaseDurationSeconds`).
    pub lease_duration: Duration,
    /// The holder stops its work when it could not renew for this long. Its distance to `lease_duration` is
    /// what clocks may differ in speed, and what a request may be under way after the work was stopped by a
    /// loss. (At a clean end requests are finished first.)
    pub renew_deadline: Duration,
    /// Between two renewals, and at most between two looks of a candidate that waits.
    pub retry_period: Duration,
}

/// Three durations that do not make a safe lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// The record carries whole seconds.
    #[error("the lease duration ({0:?}) must be whole seconds, at least one and at most i32::MAX")]
    NotWholeSeconds(Duration),
    /// A holder would still work when another one takes the lock.
    #[error("the lease duration ({lease:?}) must be longer than the renew deadline ({renew:?})")]
    LeaseTooShort {
        /// The lease duration given.
        lease: Duration,
        /// The renew deadline given.
        renew: Duration,
    },
    /// One late renewal would lose the lock.
    #[error("the renew deadline ({renew:?}) must be longer than 1.2 retry periods ({retry:?})")]
    DeadlineTooShort {
        /// The renew deadline given.
        renew: Duration,
        /// The retry period given.
        retry: Duration,
    },
    /// The API server would be asked without a pause.
    #[error("the retry period must be longer than nothing")]
    NoPause,
}

impl Default for Timing {
    /// What Kubernetes' own managers use: 15 s, 10 s, 2 s.
    fn default() -> Self {
        Self {
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl Timing {
    /// Three durations that make a safe lock: lease > renew > 1.2 × retry > 0.
    pub fn new(lease: Duration, renew: Duration, retry: Duration) -> Result<Self, TimingError> {
        if lease.subsec_nanos() != 0 || lease.is_zero() || i32::try_from(lease.as_secs()).is_err() {
            return Err(TimingError::NotWholeSeconds(lease));
        }
        if lease <= renew {
            return Err(TimingError::LeaseTooShort { lease, renew });
        }
        if retry.is_zero() {
            return Err(TimingError::NoPause);
        }
        if renew <= retry.mul_f64(RETRIES_WITHIN_DEADLINE) {
            return Err(TimingError::DeadlineTooShort { renew, retry });
        }
        Ok(Self {
            lease_duration: lease,
            renew_deadline: renew,
            retry_period: retry,
        })
    }

    /// `leaseDurationSeconds` of a record.
    #[must_use]
    pub fn lease_seconds(&self) -> i32 {
        i32::try_from(self.lease_duration.as_secs()).unwrap_or(i32::MAX)
    }

    /// Until when a holder may work whose last successful write was *sent* at `sent`. Others count the lease
    /// duration from when they saw the write, which is later.
    #[must_use]
    pub fn valid_until<T: Add<Duration, Output = T>>(&self, sent: T) -> T {
        sent + self.renew_deadline
    }

    /// How long one request may take: two fit into the renew deadline.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// The pause before the next look of a candidate, somewhat shorter than the retry period: many candidates
    /// spread out, and a released lock is found within the retry period also by a candidate whose watch does
    /// not work. `chance` is a random number of [0, 1).
    #[must_use]
    pub fn pause(&self, chance: f64) -> Duration {
        self.retry_period.mul_f64(1.0 - 0.2 * chance.clamp(0.0, 1.0))
    }
}
