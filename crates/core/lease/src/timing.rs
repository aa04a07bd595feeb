//! The durations of a lock: lease, renew deadline, retry period.

use std::ops::Add;
use std::time::Duration;

/// The renew deadline must fit this many retry periods, so that a single late request does not lose the lock.
const RETRIES_WITHIN_DEADLINE: f64 = 1.2;

/// The three durations of a lock. All candidates of a lock should use the same durations. Candidates wait for
/// the duration in the holder's record, so different durations are safe too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// A candidate may take the lock after this time without a change of the record. Whole seconds: the
    /// record carries seconds (`leaseDurationSeconds`).
    pub lease_duration: Duration,
    /// The holder stops the work when no renewal succeeded for this time. The difference to `lease_duration`
    /// covers two effects: clocks of different speed, and requests under way after a loss stopped the work.
    /// (At a clean end requests are finished first.)
    pub renew_deadline: Duration,
    /// Time between two renewals, and maximum time between two reads of a waiting candidate.
    pub retry_period: Duration,
}

/// Three durations that do not make a safe lock.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TimingError {
    /// The lease duration is not a valid number of whole seconds.
    #[error("the lease duration ({0:?}) must be whole seconds, at least one and at most i32::MAX")]
    NotWholeSeconds(Duration),
    /// A holder would still work when a candidate takes the lock.
    #[error("the lease duration ({lease:?}) must be longer than the renew deadline ({renew:?})")]
    LeaseTooShort {
        /// The lease duration given.
        lease: Duration,
        /// The renew deadline given.
        renew: Duration,
    },
    /// A single late renewal would lose the lock.
    #[error("the renew deadline ({renew:?}) must be longer than 1.2 retry periods ({retry:?})")]
    DeadlineTooShort {
        /// The renew deadline given.
        renew: Duration,
        /// The retry period given.
        retry: Duration,
    },
    /// The API server would receive requests without a pause.
    #[error("the retry period must be longer than nothing")]
    NoPause,
}

impl Default for Timing {
    /// The defaults of Kubernetes' own managers: 15 s, 10 s, 2 s.
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

    /// The end of the right of a holder with a last successful write *sent* at `sent`. Candidates count the
    /// lease duration from when the candidates saw the write, which is later.
    #[must_use]
    pub fn valid_until<T: Add<Duration, Output = T>>(&self, sent: T) -> T {
        sent + self.renew_deadline
    }

    /// Time-out of a request: two requests fit into the renew deadline.
    #[must_use]
    pub fn request_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// The pause before a candidate's next read, slightly shorter than the retry period. So many candidates
    /// spread out, and a candidate without a watch finds a released lock within the retry period. `chance` is
    /// a random number of [0, 1).
    #[must_use]
    pub fn pause(&self, chance: f64) -> Duration {
        self.retry_period.mul_f64(1.0 - 0.2 * chance.clamp(0.0, 1.0))
    }
}
