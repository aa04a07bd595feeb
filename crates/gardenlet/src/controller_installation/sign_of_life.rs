//! Whether an extension lives, by the Lease that it renews beside itself. A pod may run and be ready while
//! its controllers stand still; whoever waits for its objects then has nothing but this.
//!
//! The Lease holds the time of another clock. So an old one is believed only when it was also seen not to
//! change for longer than several renewals take, and one that changes is a sign of life whatever it says.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use tokio::time::Instant;

/// An extension whose Lease was not renewed for so long counts as gone.
const GONE_AFTER: Duration = Duration::from_secs(300);
/// For how long an old Lease has to be seen unchanged. Extensions renew every 30 s.
const SEEN_FOR: Duration = Duration::from_secs(120);
/// How often it is looked whether one that was gone is back.
const LOOK_AGAIN: Duration = Duration::from_secs(60);

/// What a Lease says, and when to look at it again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Lives(Duration),
    /// Not known yet, as this process looks at it for the first time.
    Open(Duration),
    Gone(Duration),
}

impl Sign {
    /// When the Lease may say something else.
    pub(super) fn again(self) -> Duration {
        match self {
            Self::Lives(again) | Self::Open(again) | Self::Gone(again) => again,
        }
    }
}

/// Since when a Lease is seen as it is.
#[derive(Clone, Copy, Debug)]
struct Seen {
    renewed: Timestamp,
    since: Instant,
    /// Whether it was seen with another time before.
    has_changed: bool,
}

/// What this process has seen of Leases, by installation.
#[derive(Default)]
pub(super) struct Watched(Mutex<HashMap<String, Seen>>);

impl Watched {
    /// Takes note of a Lease, and says what that means.
    pub(super) fn sign(
        &self,
        installation: &str,
        renewed: Timestamp,
        (now, tick): (Timestamp, Instant),
    ) -> Sign {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.get(installation).copied();
        let seen = before.filter(|seen| seen.renewed == renewed).unwrap_or(Seen {
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

/// `age`: by what the Lease says; nothing if it is from the future. `unchanged`: by this process's own clock.
fn judge(age: Duration, unchanged: Duration, has_changed: bool) -> Sign {
    let is_old = age >= GONE_AFTER;
    if unchanged >= GONE_AFTER || (is_old && unchanged >= SEEN_FOR) {
        Sign::Gone(LOOK_AGAIN)
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
        assert_eq!(sign("a", renewed, 120), Sign::Gone(LOOK_AGAIN));
        let later = "2026-01-01T00:00:30Z".parse().unwrap();
        assert_eq!(sign("a", later, 150), Sign::Lives(SEEN_FOR), "it was renewed");
        assert_eq!(sign("a", later, 270), Sign::Gone(LOOK_AGAIN));
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
