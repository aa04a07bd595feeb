//! Is a seed's gardenlet alive? Judged by what this process saw with its own clock.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

/// What is known of a gardenlet.
#[derive(Debug, PartialEq, Eq)]
pub enum Liveness {
    /// Its Lease changed within the monitor period, or has not been watched for that long.
    Heard,
    /// Its Lease did not change for that long.
    Silent(Duration),
}

/// When which state of a seed's Lease was first seen.
#[derive(Debug, Default)]
pub struct Observations {
    seen: HashMap<String, (Option<Timestamp>, Instant)>,
}

impl Observations {
    /// Takes note of a Lease's renewal time (`None`: there is no Lease) and judges. The first look at a seed gives its
    /// gardenlet a whole period, since nothing is known of the time before this process started.
    pub fn judge(
        &mut self,
        seed: &str,
        renewed: Option<Timestamp>,
        period: Duration,
        now: Instant,
    ) -> Liveness {
        let since = match self.seen.get(seed) {
            Some((last, since)) if *last == renewed => *since,
            _ => {
                self.seen.insert(seed.to_owned(), (renewed, now));
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
        // One renewal is enough to be heard again, whatever time it carries (a clock may run behind).
        assert_eq!(observations.judge("a", at(4), PERIOD, later(50)), Liveness::Heard);
        assert_eq!(observations.judge("a", at(4), PERIOD, later(90)), Liveness::Heard);
        assert_eq!(
            observations.judge("a", at(4), PERIOD, later(91)),
            Liveness::Silent(Duration::from_secs(41))
        );
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
