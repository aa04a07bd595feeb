//! What a candidate saw of a lock, and when, by its own monotonic clock.
//!
//! This is what makes the election independent of clocks that differ: the only question ever asked is "for
//! how long have *I* seen no change". All instants here come from one clock. (Clocks may differ in *speed*;
//! how much is the ratio of lease duration to renew deadline.)

use std::time::{Duration, Instant};

use crate::Record;

/// What the API server has for a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// No Lease of that name.
    Absent,
    /// A Lease with this record.
    Present(Record),
}

/// The last thing seen, and since when it has been the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    seen: Seen,
    since: Instant,
    /// What the Lease said when it was last seen, where it is gone.
    deleted: Option<Record>,
}

impl Observation {
    /// The first look at a lock. A candidate that has just started knows nothing of the time before: it waits
    /// the whole lease duration, also when the record looks old, and also when there is none.
    #[must_use]
    pub fn first(seen: Seen, now: Instant) -> Self {
        Self {
            seen,
            since: now,
            deleted: None,
        }
    }

    /// A further look. The time starts anew only when something changed.
    pub fn update(&mut self, seen: Seen, now: Instant) {
        if self.seen == seen {
            return;
        }
        let before = std::mem::replace(&mut self.seen, seen);
        self.deleted = match (before, &self.seen) {
            (Seen::Present(record), Seen::Absent) => Some(record),
            _ => None,
        };
        self.since = now;
    }

    /// What was last seen.
    #[must_use]
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Since when it has been the same.
    #[must_use]
    pub fn since(&self) -> Instant {
        self.since
    }

    /// Who holds the lock as far as one can know: also the holder of a Lease that was deleted.
    #[must_use]
    pub fn holder(&self) -> Option<&str> {
        self.last_record().and_then(|record| record.holder.as_deref())
    }

    /// Whether another one than `me` may hold it. Without a Lease that may be anybody: deleting a Lease does
    /// not stop its holder, and whoever held it last may have got it unseen.
    #[must_use]
    pub fn may_be_anothers(&self, me: &str) -> bool {
        match &self.seen {
            Seen::Present(record) => record.holder.as_deref().is_some_and(|holder| holder != me),
            Seen::Absent => self.holder() != Some(me),
        }
    }

    /// When the holder's time runs out if it is not seen to live. A record that names no duration counts
    /// `fallback`. Without a Lease the time counts from when it was seen to be gone: until then it may have
    /// been renewed.
    #[must_use]
    pub fn expires(&self, fallback: Duration) -> Instant {
        let named = self.last_record().and_then(|record| record.lease_seconds);
        let named = named
            .and_then(|seconds| u64::try_from(seconds).ok())
            .filter(|seconds| *seconds > 0)
            .map(Duration::from_secs);
        // The longest duration that a record can carry is 68 years; an Instant holds that.
        self.since
            + match self.seen {
                Seen::Present(_) => named.unwrap_or(fallback),
                Seen::Absent => named.unwrap_or(fallback).max(fallback),
            }
    }

    /// Since when the lock has been without a holder: released, or run out. `None` while it is held, and
    /// where there was never a holder to hand over.
    #[must_use]
    pub fn free_since(&self, fallback: Duration, now: Instant) -> Option<Instant> {
        let record = self.last_record()?;
        match (&self.seen, &record.holder) {
            (Seen::Present(_), None) => Some(self.since),
            _ => Some(self.expires(fallback)).filter(|expired| *expired <= now),
        }
    }

    fn last_record(&self) -> Option<&Record> {
        match &self.seen {
            Seen::Present(record) => Some(record),
            Seen::Absent => self.deleted.as_ref(),
        }
    }
}
