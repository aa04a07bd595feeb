//! What a candidate, or the holder, does about a lock: a pure function of what it saw.
//!
//! Whatever is decided here is carried out as a write that the API server refuses when the Lease has changed
//! since it was read. So a decision on an old observation does no harm: a candidate that was stopped for an
//! hour and wakes up to take over what has "expired" is told that its record is not the current one.

use std::time::{Duration, Instant};

use crate::observation::{Observation, Seen};
use crate::{Record, Timing};

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// No Lease exists: make one.
    Create,
    /// The lock is free, or its holder was not seen to live for its lease duration: write one's own name.
    TakeOver,
    /// It is one's own: renew it. (A candidate finds its own name where the answer to its write was lost.)
    Renew,
    /// Another one holds it, or may do so as there is no Lease, for this much longer if it is not seen to
    /// live.
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
    match observation.seen() {
        Seen::Absent => Decision::Create,
        Seen::Present(Record { holder: Some(_), .. }) if !another => Decision::Renew,
        Seen::Present(_) => Decision::TakeOver,
    }
}
