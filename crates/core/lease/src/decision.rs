//! The next action of a candidate or holder for a lock: a pure function of the observation.
//!
//! The caller carries out each decision as a write that the API server refuses if the Lease has changed since
//! the read. So a decision on an old observation does no harm. Example: a candidate that was stopped for an
//! hour wakes and tries to take over an "expired" Lease. The API server refuses the write with a conflict.

use std::time::{Duration, Instant};

use crate::observation::{LeaseState, Observation};
use crate::{ElectionRecord, Timing};

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// No Lease exists: create the Lease.
    Create,
    /// The lock is free, or the holder showed no sign of life for the holder's lease duration: write `me` as
    /// holder.
    TakeOver,
    /// `me` is the holder: renew. (A candidate finds itself as holder where the answer to a successful write
    /// was lost.)
    Renew,
    /// Another process holds the lock, or may do so while there is no Lease. Wait for this duration, unless
    /// the holder shows a sign of life.
    Wait(Duration),
}

/// Decides the next step of `me`.
#[must_use]
pub fn decide(observation: &Observation, me: &str, timing: &Timing, now: Instant) -> Decision {
    let another = observation.may_be_anothers(me);
    if another {
        let left = observation
            .expires(timing.lease_duration)
            .saturating_duration_since(now);
        if !left.is_zero() {
            return Decision::Wait(left);
        }
    }
    match observation.state() {
        LeaseState::Absent => Decision::Create,
        LeaseState::Present(ElectionRecord { holder: Some(_), .. }) if !another => Decision::Renew,
        LeaseState::Present(_) => Decision::TakeOver,
    }
}
