//! What a candidate saw of a lock, and when, by its own monotonic clock.
//!
//! This is what makes the election independent of clocks that differ: the only question ever asked is "for how long have
//! *I* seen no change". All instants here come from one clock. (Clocks may differ in *speed*; how much is the ratio of
//! lease duration to renew deadline.)

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
    /// The record that was held when its Lease was deleted, and since when it had been seen. Deleting a Lease does not
    /// stop its holder.
    deleted: Option<(Record, Instant)>,
}

impl Observation {
    /// The first look at a lock. A candidate that has just started knows nothing of the time before: it waits the whole
    /// lease duration, also when the record looks old.
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
            (Seen::Present(record), Seen::Absent) if record.holder.is_some() => Some((record, self.since)),
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
        self.claim().and_then(|(record, _)| record.holder.as_deref())
    }

    /// When the holder's time runs out if it is not seen to live. A record that names no duration counts `fallback`.
    #[must_use]
    pub fn expires(&self, fallback: Duration) -> Instant {
        let Some((record, since)) = self.claim() else {
            return self.since;
        };
        let named = record
            .lease_seconds
            .and_then(|seconds| u64::try_from(seconds).ok());
        // The longest duration that a record can carry is 68 years; an Instant holds that.
        since
            + named
                .filter(|seconds| *seconds > 0)
                .map_or(fallback, Duration::from_secs)
    }

    /// Since when the lock has been without a holder: released, or run out. `None` while it is held, and where there was
    /// never a holder to hand over.
    #[must_use]
    pub fn free_since(&self, fallback: Duration, now: Instant) -> Option<Instant> {
        let (record, since) = self.claim()?;
        match record.holder {
            None => Some(since),
            Some(_) => Some(self.expires(fallback)).filter(|expired| *expired <= now),
        }
    }

    fn claim(&self) -> Option<(&Record, Instant)> {
        match &self.seen {
            Seen::Present(record) => Some((record, self.since)),
            Seen::Absent => self.deleted.as_ref().map(|(record, since)| (record, *since)),
        }
    }
}
