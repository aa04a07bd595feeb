//! Whether a seed's gardenlet is alive, measured with this process's own clock.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

/// The liveness of a gardenlet.
#[derive(Debug, PartialEq, Eq)]
pub enum Liveness {
    /// The Lease changed within the monitor period, or has been watched for less than that.
    Heard,
    /// The Lease did not change for this time.
    Silent(Duration),
}

/// The time at which the present state of each seed's Lease was first seen.
#[derive(Debug, Default)]
pub struct Observations {
    seen: HashMap<String, Observation>,
}

#[derive(Debug)]
struct Observation {
    renewed: Option<Timestamp>,
    since: Instant,
    /// When all Shoots of the seed were `Unknown` last, during this silence.
    shoots_unknown: Option<Instant>,
}

impl Observations {
    /// Records a Lease's renewal time (`None`: there is no Lease) and judges. The first check of a seed gives
    /// its gardenlet a whole period, because the time before the start of this process is unknown.
    pub fn judge(
        &mut self,
        seed: &str,
        renewed: Option<Timestamp>,
        period: Duration,
        now: Instant,
    ) -> Liveness {
        let since = match self.seen.get(seed) {
            Some(last) if last.renewed == renewed => last.since,
            _ => {
                let first = Observation {
                    renewed,
                    since: now,
                    shoots_unknown: None,
                };
                self.seen.insert(seed.to_owned(), first);
                now
            }
        };
        let silence = now.saturating_duration_since(since);
        if silence > period {
            Liveness::Silent(silence)
        } else {
            Liveness::Heard
        }
    }

    /// Whether the Shoots of a silent seed must be set to `Unknown`: at first, and again after each `period`.
    /// A seed that hands a shoot over to the silent seed leaves its own report in the Shoot.
    #[must_use]
    pub fn are_shoots_due(&self, seed: &str, period: Duration, now: Instant) -> bool {
        let last = self.seen.get(seed).and_then(|seen| seen.shoots_unknown);
        last.is_none_or(|last| now.saturating_duration_since(last) >= period)
    }

    /// Notes that all Shoots of the seed are `Unknown`.
    pub fn note_shoots(&mut self, seed: &str, now: Instant) {
        if let Some(seen) = self.seen.get_mut(seed) {
            seen.shoots_unknown = Some(now);
        }
    }

    /// Forgets a seed that is gone.
    pub fn forget(&mut self, seed: &str) {
        self.seen.remove(seed);
    }
}

#[cfg(test)]
#[path = "liveness_tests.rs"]
mod tests;
