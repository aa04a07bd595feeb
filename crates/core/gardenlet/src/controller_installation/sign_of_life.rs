//! Whether an extension is alive, by the Lease that the extension renews in its namespace. A pod may run and
//! be ready while its controllers hang, and only the Lease shows that.
//!
//! The time in the Lease comes from a different clock. So an old Lease counts as expired only after this
//! process has also seen the Lease unchanged for several renewal periods. A Lease that changes is a sign of
//! life at any time value.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::Instant;

/// An extension whose Lease was not renewed for this time counts as gone.
const GONE_AFTER: Duration = Duration::from_secs(300);
/// For how long this process must see an old Lease unchanged. Extensions renew every 30 s.
const SEEN_FOR: Duration = Duration::from_secs(120);
/// How often the Lease of a gone extension is checked for a return.
const RETURN_CHECK_PERIOD: Duration = Duration::from_secs(60);

/// The meaning of a Lease, with the delay until the next check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Lives(Duration),
    /// Undecided, as this process has only just begun to watch the Lease.
    Open(Duration),
    Gone(Duration),
}

impl Sign {
    /// The delay after which the meaning of the Lease may change.
    pub(super) fn again(self) -> Duration {
        match self {
            Self::Lives(again) | Self::Open(again) | Self::Gone(again) => again,
        }
    }
}

/// Since when this process sees the present value of a Lease.
#[derive(Clone, Copy, Debug)]
struct LeaseObservation {
    renewed: Timestamp,
    since: Instant,
    /// Whether this process saw an earlier value.
    has_changed: bool,
}

/// The Leases that this process has seen, by installation.
#[derive(Default)]
pub(super) struct Watched(Mutex<HashMap<String, LeaseObservation>>);

impl Watched {
    /// Records the value of a Lease, and returns the meaning.
    pub(super) fn sign(
        &self,
        installation: &str,
        renewed: Timestamp,
        (now, tick): (Timestamp, Instant),
    ) -> Sign {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.get(installation).copied();
        let seen = before
            .filter(|seen| seen.renewed == renewed)
            .unwrap_or(LeaseObservation {
                renewed,
                since: tick,
                has_changed: before.is_some(),
            });
        all.insert(installation.to_owned(), seen);
        let age = Duration::try_from(now.duration_since(renewed)).unwrap_or_default();
        judge(age, tick.saturating_duration_since(seen.since), seen.has_changed)
    }

    pub(super) fn forget(&self, installation: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(installation);
    }
}

/// `age`: by the time in the Lease; zero for a time in the future. `unchanged`: by the clock of this process.
fn judge(age: Duration, unchanged: Duration, has_changed: bool) -> Sign {
    let is_old = age >= GONE_AFTER;
    if unchanged >= GONE_AFTER || (is_old && unchanged >= SEEN_FOR) {
        Sign::Gone(RETURN_CHECK_PERIOD)
    } else if !is_old {
        Sign::Lives(GONE_AFTER.saturating_sub(age.max(unchanged)))
    } else if has_changed {
        Sign::Lives(SEEN_FOR.saturating_sub(unchanged))
    } else {
        Sign::Open(SEEN_FOR.saturating_sub(unchanged))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_old_lease_is_believed_when_it_was_watched_as_well() {
        use Sign::{Gone, Lives, Open};
        let s = Duration::from_secs;
        let rows = [
            ("just renewed", 1, 0, false, Lives(s(299))),
            ("looked at for long", 100, 200, false, Lives(s(100))),
            (
                "old, and this process has just begun",
                900,
                0,
                false,
                Open(s(120)),
            ),
            ("old, and watched for a while", 900, 119, false, Open(s(1))),
            ("old, and watched", 900, 120, false, Gone(s(60))),
            ("became old between two looks", 300, 1, true, Lives(s(119))),
            ("became old and stays", 420, 121, true, Gone(s(60))),
            (
                "its clock is ten minutes late, and it is renewed",
                630,
                0,
                true,
                Lives(s(120)),
            ),
            (
                "its clock is late, and it is not renewed any more",
                750,
                120,
                true,
                Gone(s(60)),
            ),
            ("its clock is ahead, and it is renewed", 0, 0, true, Lives(s(300))),
            (
                "its clock is ahead, and it is not renewed any more",
                0,
                300,
                true,
                Gone(s(60)),
            ),
        ];
        for (what, age, unchanged, has_changed, wanted) in rows {
            assert_eq!(judge(s(age), s(unchanged), has_changed), wanted, "{what}");
        }
    }

    #[test]
    fn what_was_seen_is_of_one_installation_and_forgotten_with_it() {
        let watched = Watched::default();
        let (renewed, begin) = ("2026-01-01T00:00:00Z".parse().unwrap(), Instant::now());
        let old = "2026-01-01T01:00:00Z".parse().unwrap();
        let sign =
            |name, renewed, seconds| watched.sign(name, renewed, (old, begin + Duration::from_secs(seconds)));
        assert_eq!(sign("a", renewed, 0), Sign::Open(SEEN_FOR));
        assert_eq!(sign("b", renewed, 120), Sign::Open(SEEN_FOR));
        assert_eq!(sign("a", renewed, 120), Sign::Gone(RETURN_CHECK_PERIOD));
        let later = "2026-01-01T00:00:30Z".parse().unwrap();
        assert_eq!(sign("a", later, 150), Sign::Lives(SEEN_FOR), "it was renewed");
        assert_eq!(sign("a", later, 270), Sign::Gone(RETURN_CHECK_PERIOD));
        watched.forget("a");
        assert_eq!(sign("a", later, 300), Sign::Open(SEEN_FOR));
    }

    #[test]
    fn a_lease_from_the_future_has_no_age() {
        let watched = Watched::default();
        let renewed = "2026-01-01T00:10:00Z".parse().unwrap();
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let sign = watched.sign("a", renewed, (now, Instant::now()));
        assert_eq!(sign, Sign::Lives(GONE_AFTER));
    }
}
