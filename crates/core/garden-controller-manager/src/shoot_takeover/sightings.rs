//! How long values have been unchanged, measured with the clock of this process. Times of other machines are
//! only compared with earlier times of the same machine.

use std::{collections::HashMap, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

/// The silence of a seed's Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// The Lease was renewed within the monitor period.
    Fresh,
    /// The Lease has not been watched for a whole monitor period; the value is the remaining time.
    Unknown(Duration),
    /// The Lease was not renewed for this time, which is longer than the monitor period.
    Silent(Duration),
}

/// Values by name, with the time of their last change.
#[derive(Debug)]
pub struct Sightings<V> {
    seen: HashMap<String, Seen<V>>,
}

#[derive(Debug)]
struct Seen<V> {
    value: V,
    since: Instant,
    /// A change was observed, so `since` is the time of a write and not the time when this process began to
    /// watch.
    changed: bool,
}

impl<V> Default for Sightings<V> {
    fn default() -> Self {
        Self { seen: HashMap::new() }
    }
}

impl<V: PartialEq> Sightings<V> {
    /// Records the present value, and returns how long the value has been unchanged.
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

    /// The last observed value.
    pub fn get(&self, name: &str) -> Option<&V> {
        self.seen.get(name).map(|seen| &seen.value)
    }

    /// Removes the entry of a deleted object.
    pub fn forget(&mut self, name: &str) {
        self.seen.remove(name);
    }

    /// Resets all times after the garden could not be read: changes may have been missed, and other processes
    /// may have been unable to write.
    pub fn begin_anew(&mut self, now: Instant) {
        for seen in self.seen.values_mut() {
            seen.since = now;
            seen.changed = false;
        }
    }
}

impl Sightings<Option<Timestamp>> {
    /// Records a Lease's renewal time. A Lease that appears after a read without a Lease is no sign of life.
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

/// The progress of an operation over all of its attempts.
#[derive(Debug, PartialEq, Eq)]
pub struct Advance {
    operation: u64,
    reached: i32,
}

impl Sightings<Advance> {
    /// Records the progress, and returns how long the operation has made no progress beyond its maximum. An
    /// attempt that repeats the work of an earlier attempt is no progress.
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

    /// A process reads a Shoot before its watch has shown the Leases.
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
        // The age that the Lease states does not matter: the time before the first read is unknown.
        assert_eq!(judge(1, 0), Silence::Unknown(PERIOD));
        assert_eq!(judge(1, 30), Silence::Unknown(Duration::from_secs(10)));
        assert_eq!(judge(1, 41), Silence::Silent(Duration::from_secs(41)));
        assert_eq!(judge(2, 50), Silence::Fresh);
        assert_eq!(judge(2, 90), Silence::Fresh);
        assert_eq!(judge(2, 91), Silence::Silent(Duration::from_secs(41)));
        // A clock that was set back is a change, too.
        assert_eq!(judge(1, 92), Silence::Fresh);
    }

    /// A gardenlet writes the status again with each attempt.
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
