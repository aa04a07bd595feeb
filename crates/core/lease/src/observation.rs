//! A candidate's observation of a lock, timed by the candidate's own monotonic clock.
//!
//! The observation makes the election independent of clocks that differ: the only question is "for how long
//! have *I* seen no change". All instants here come from a single clock. (Clocks may differ in *speed*; the
//! ratio of lease duration to renew deadline is the bound.)

use std::time::{Duration, Instant};

use crate::ElectionRecord;

/// The state of a lock at the API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// No Lease of that name.
    Absent,
    /// A Lease with this record.
    Present(ElectionRecord),
}

/// The last observed state, and the start of the time without a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    seen: LeaseState,
    since: Instant,
    /// The last record of a Lease that was deleted since.
    deleted: Option<ElectionRecord>,
}

impl Observation {
    /// The first read of a lock. A candidate that has just started does not know the time before. So the
    /// candidate waits for the whole lease duration, also when the record looks old, and also when there is
    /// no record.
    #[must_use]
    pub fn first(seen: LeaseState, now: Instant) -> Self {
        Self {
            seen,
            since: now,
            deleted: None,
        }
    }

    /// A further read. The time restarts only when the state has changed.
    pub fn update(&mut self, seen: LeaseState, now: Instant) {
        if self.seen == seen {
            return;
        }
        let before = std::mem::replace(&mut self.seen, seen);
        self.deleted = match (before, &self.seen) {
            (LeaseState::Present(record), LeaseState::Absent) => Some(record),
            _ => None,
        };
        self.since = now;
    }

    /// The last observed state.
    #[must_use]
    pub fn state(&self) -> &LeaseState {
        &self.seen
    }

    /// The start of the time without a change.
    #[must_use]
    pub fn since(&self) -> Instant {
        self.since
    }

    /// The holder of the lock, as far as known; also the holder of a Lease that was deleted.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        self.last_record().and_then(|record| record.holder.as_deref())
    }

    /// Whether a process other than `me` may hold the lock. Without a Lease any process may: deleting a Lease
    /// does not stop the holder, and the last holder may have won the lock unseen.
    #[must_use]
    pub fn may_be_anothers(&self, me: &str) -> bool {
        match &self.seen {
            LeaseState::Present(record) => record.holder.as_deref().is_some_and(|holder| holder != me),
            LeaseState::Absent => self.holder() != Some(me),
        }
    }

    /// The expiry of the holder's time without a sign of life. A record without a duration counts `fallback`.
    /// Without a Lease the time counts from the first read without a Lease, because the holder may have
    /// renewed until then.
    #[must_use]
    pub fn expires(&self, fallback: Duration) -> Instant {
        let named = self.last_record().and_then(|record| record.lease_seconds);
        let named = named
            .and_then(|seconds| u64::try_from(seconds).ok())
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs);
        // The longest duration that a record can carry is 68 years, within the range of an `Instant`.
        self.since
            + match self.seen {
                LeaseState::Present(_) => named.unwrap_or(fallback),
                LeaseState::Absent => named.unwrap_or(fallback).max(fallback),
            }
    }

    /// The start of the time without a holder (released or expired). `None` while the lock is held, and where
    /// there never was a holder to hand over.
    #[must_use]
    pub fn free_since(&self, fallback: Duration, now: Instant) -> Option<Instant> {
        let record = self.last_record()?;
        match (&self.seen, &record.holder) {
            (LeaseState::Present(_), None) => Some(self.since),
            _ => Some(self.expires(fallback)).filter(|expired| *expired <= now),
        }
    }

    fn last_record(&self) -> Option<&ElectionRecord> {
        match &self.seen {
            LeaseState::Present(record) => Some(record),
            LeaseState::Absent => self.deleted.as_ref(),
        }
    }
}
