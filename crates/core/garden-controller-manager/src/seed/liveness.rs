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
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(40);

    fn at(second: i64) -> Option<Timestamp> {
        Timestamp::from_second(second).ok()
    }

    #[test]
    fn silence_is_measured_from_the_last_change_that_was_seen() {
        let mut observations = Observations::default();
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        // A Lease that is years old is still fresh to a process that has just started.
        assert_eq!(observations.judge("a", at(5), PERIOD, start), Liveness::Heard);
        assert_eq!(observations.judge("a", at(5), PERIOD, later(40)), Liveness::Heard);
        assert_eq!(
            observations.judge("a", at(5), PERIOD, later(41)),
            Liveness::Silent(Duration::from_secs(41))
        );
        // A single renewal makes the gardenlet alive again, with any renewal time (a clock may run behind).
        assert_eq!(observations.judge("a", at(4), PERIOD, later(50)), Liveness::Heard);
        assert_eq!(observations.judge("a", at(4), PERIOD, later(90)), Liveness::Heard);
        assert_eq!(
            observations.judge("a", at(4), PERIOD, later(91)),
            Liveness::Silent(Duration::from_secs(41))
        );
    }

    #[test]
    fn shoots_of_a_silent_seed_are_listed_once_a_period() {
        let mut observations = Observations::default();
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        observations.judge("a", at(5), PERIOD, start);
        assert!(observations.are_shoots_due("a", PERIOD, later(50)));
        observations.note_shoots("a", later(50));
        observations.judge("a", at(5), PERIOD, later(60));
        assert!(!observations.are_shoots_due("a", PERIOD, later(89)));
        assert!(observations.are_shoots_due("a", PERIOD, later(90)));
        // The period restarts with each silence.
        observations.judge("a", at(6), PERIOD, later(61));
        assert!(observations.are_shoots_due("a", PERIOD, later(62)));
    }

    #[test]
    fn a_seed_without_lease_gets_one_period() {
        let mut observations = Observations::default();
        let start = Instant::now();
        assert_eq!(observations.judge("a", None, PERIOD, start), Liveness::Heard);
        let late = start + Duration::from_secs(100);
        assert_eq!(
            observations.judge("a", None, PERIOD, late),
            Liveness::Silent(Duration::from_secs(100))
        );
        observations.forget("a");
        assert_eq!(observations.judge("a", None, PERIOD, late), Liveness::Heard);
    }
}
