//! Since when something has not changed, as this process saw it with its own clock. Times of other machines
//! are compared with themselves only.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

/// What is known of a seed's Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// It was renewed within the monitor period.
    Fresh,
    /// It has not been watched for a whole monitor period: so much of it is left.
    Unknown(Duration),
    /// It was not renewed for so long, which is longer than the monitor period.
    Silent(Duration),
}

/// Values by name, and since when they are what they are.
#[derive(Debug)]
pub struct Sightings<V> {
    seen: HashMap<String, Seen<V>>,
}

#[derive(Debug)]
struct Seen<V> {
    value: V,
    since: Instant,
    /// A change was seen, so that `since` is when something was done and not when this process began to look.
    changed: bool,
}

impl<V> Default for Sightings<V> {
    fn default() -> Self {
        Self { seen: HashMap::new() }
    }
}

impl<V: PartialEq> Sightings<V> {
    /// Takes note of what is there, and tells for how long it has been.
    pub fn note(&mut self, name: &str, value: V, now: Instant) -> Duration {
        match self.seen.get_mut(name) {
            Some(seen) if seen.value == value => return now.saturating_duration_since(seen.since),
            Some(seen) => {
                *seen = Seen {
                    value,
                    since: now,
                    changed: true,
                };
            }
            None => {
                let seen = Seen {
                    value,
                    since: now,
                    changed: false,
                };
                self.seen.insert(name.to_owned(), seen);
            }
        }
        Duration::ZERO
    }

    /// What was seen last.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.seen.get(name).map(|seen| &seen.value)
    }

    /// Forgets one that is gone.
    pub fn forget(&mut self, name: &str) {
        self.seen.remove(name);
    }

    /// The garden could not be read: what was not seen may have happened meanwhile, and others may not have
    /// been able to write.
    pub fn begin_anew(&mut self, now: Instant) {
        for seen in self.seen.values_mut() {
            seen.since = now;
            seen.changed = false;
        }
    }
}

impl Sightings<Option<Timestamp>> {
    /// Takes note of a Lease's renewal time. One that was not there, or not shown yet, is no sign of life
    /// when it is.
    pub fn note_renewal(&mut self, seed: &str, renewed: Option<Timestamp>, now: Instant) -> Duration {
        if renewed.is_some() && self.get(seed) == Some(&None) {
            self.forget(seed);
        }
        self.note(seed, renewed, now)
    }

    /// Judges a seed's Lease by its renewal time (`None`: there is no Lease).
    pub fn silence(
        &mut self,
        seed: &str,
        renewed: Option<Timestamp>,
        period: Duration,
        now: Instant,
    ) -> Silence {
        let unchanged = self.note_renewal(seed, renewed, now);
        if unchanged > period {
            return Silence::Silent(unchanged);
        }
        let changed = self.seen.get(seed).is_some_and(|seen| seen.changed);
        if changed && renewed.is_some() {
            Silence::Fresh
        } else {
            Silence::Unknown(period.saturating_sub(unchanged))
        }
    }
}

/// How far an operation has come in all of its attempts.
#[derive(Debug, PartialEq, Eq)]
pub struct Advance {
    operation: u64,
    reached: i32,
}

impl Sightings<Advance> {
    /// Takes note of the progress, and returns for how long the operation has got no further than ever
    /// before. An attempt that repeats what an earlier attempt has done is no progress.
    pub fn note_progress(&mut self, name: &str, operation: u64, progress: i32, now: Instant) -> Duration {
        let reached = match self.get(name) {
            Some(seen) if seen.operation == operation => seen.reached.max(progress),
            _ => progress,
        };
        self.note(name, Advance { operation, reached }, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PERIOD: Duration = Duration::from_secs(40);

    fn at(second: i64) -> Option<Timestamp> {
        Timestamp::from_second(second).ok()
    }

    /// A process looks at a Shoot before its watch has shown the Leases.
    #[test]
    fn a_first_look_is_no_sign_of_life() {
        let (mut leases, start) = (Sightings::default(), Instant::now());
        let mut judge = |renewed| leases.silence("a", renewed, PERIOD, start);
        assert_eq!(judge(None), Silence::Unknown(PERIOD));
        assert_eq!(judge(at(1)), Silence::Unknown(PERIOD));
        assert_eq!(judge(at(2)), Silence::Fresh);
    }

    #[test]
    fn silence_is_what_was_seen_from_here() {
        let mut leases = Sightings::default();
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        let mut judge = |second, time| leases.silence("a", at(second), PERIOD, later(time));
        // However old the Lease says it is: nothing is known of the time before.
        assert_eq!(judge(1, 0), Silence::Unknown(PERIOD));
        assert_eq!(judge(1, 30), Silence::Unknown(Duration::from_secs(10)));
        assert_eq!(judge(1, 41), Silence::Silent(Duration::from_secs(41)));
        assert_eq!(judge(2, 50), Silence::Fresh);
        assert_eq!(judge(2, 90), Silence::Fresh);
        assert_eq!(judge(2, 91), Silence::Silent(Duration::from_secs(41)));
        // A clock that was set back is a change, too.
        assert_eq!(judge(1, 92), Silence::Fresh);
    }

    /// A gardenlet writes the status anew with each attempt.
    #[test]
    fn progress_that_goes_in_circles_is_no_progress() {
        let mut operations = Sightings::default();
        let start = Instant::now();
        let mut note = |operation, progress, second| {
            let now = start + Duration::from_secs(second);
            operations.note_progress("u", operation, progress, now).as_secs()
        };
        assert_eq!(note(1, 0, 0), 0);
        assert_eq!(note(1, 40, 10), 0);
        for (progress, second) in [(40, 20), (0, 300), (15, 310), (40, 400), (0, 900)] {
            assert_eq!(
                note(1, progress, second),
                second - 10,
                "{progress} % after {second} s"
            );
        }
        assert_eq!(
            note(1, 41, 910),
            0,
            "an attempt gets further than every attempt before"
        );
        assert_eq!(note(2, 5, 920), 0, "a new operation begins anew");
        assert_eq!(note(2, 0, 930), 10);
    }

    #[test]
    fn an_outage_of_the_garden_is_nobodys_silence() {
        let mut leases = Sightings::default();
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        leases.silence("a", at(1), PERIOD, start);
        leases.silence("a", at(2), PERIOD, later(10));
        leases.begin_anew(later(7000));
        let judged = leases.silence("a", at(2), PERIOD, later(7001));
        assert_eq!(judged, Silence::Unknown(Duration::from_secs(39)));
        let judged = leases.silence("a", at(2), PERIOD, later(7041));
        assert_eq!(judged, Silence::Silent(Duration::from_secs(41)));
    }

    #[test]
    fn a_lease_that_is_taken_away_is_no_sign_of_life() {
        let mut leases = Sightings::default();
        let start = Instant::now();
        let later = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(leases.silence("a", None, PERIOD, start), Silence::Unknown(PERIOD));
        leases.silence("a", at(1), PERIOD, later(10));
        assert_eq!(
            leases.silence("a", None, PERIOD, later(20)),
            Silence::Unknown(PERIOD)
        );
        leases.forget("a");
        assert_eq!(
            leases.silence("a", None, PERIOD, later(99)),
            Silence::Unknown(PERIOD)
        );
    }
}
