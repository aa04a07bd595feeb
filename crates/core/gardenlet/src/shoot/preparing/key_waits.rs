//! The waits of preparations for the keys of the source and for the BackupEntry. A source makes the keys
//! within seconds of the grant, or makes no keys, because a setting of the source is off. The controller
//! repeats the attempt, so that no wait holds a worker. After a restart each wait begins again.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use api::gardencore::shoot::MigrationPreparation;
use placement::grant_id;
use tokio::time::Instant;

/// Before this time, missing keys are not reported: most keys follow the grant.
pub(super) const REPORTED_AFTER: Duration = Duration::from_secs(30);
/// Pauses between two attempts, each with some reads in the garden.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Longer than a pause and the wait for a worker.
const REMEMBERED_FOR: Duration = Duration::from_secs(300);

struct KeyWait {
    grant: String,
    since: Instant,
    /// The last attempt without keys.
    last: Instant,
}

/// The wait of each shoot, by the uid of the Shoot.
#[derive(Default)]
pub(super) struct KeyWaits(Mutex<BTreeMap<String, KeyWait>>);

impl KeyWaits {
    /// Records an attempt without keys. Returns the time since the first attempt under this grant.
    pub(super) fn record(&self, granted: &MigrationPreparation, now: Instant) -> Duration {
        let mut waits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waits.retain(|_, wait| now.duration_since(wait.last) < REMEMBERED_FOR);
        let grant = grant_id(granted);
        let known = waits.get(&granted.uid).filter(|wait| wait.grant == grant);
        let since = known.map_or(now, |wait| wait.since);
        let last = now;
        waits.insert(granted.uid.clone(), KeyWait { grant, since, last });
        now.duration_since(since)
    }
}

/// The pause after an attempt without keys. `waited`: the time since the first attempt.
pub(super) fn pause_after(waited: Duration) -> Duration {
    waited.clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn grant(uid: &str, epoch: i64) -> MigrationPreparation {
        serde_json::from_value(
            json!({"uid": uid, "source": "a", "destination": "b", "epoch": epoch,
            "expiry": "1970-01-01T00:01:40Z"}),
        )
        .unwrap()
    }

    #[test]
    fn a_wait_begins_with_the_first_attempt_under_a_grant() {
        let (waits, start) = (KeyWaits::default(), Instant::now());
        let after = |seconds| start + Duration::from_secs(seconds);
        let (first, later) = (grant("u", 3), grant("u", 4));
        assert_eq!(waits.record(&first, start), Duration::ZERO);
        assert_eq!(waits.record(&first, after(40)), Duration::from_secs(40));
        assert_eq!(waits.record(&grant("v", 3), after(40)), Duration::ZERO);
        assert_eq!(waits.record(&later, after(41)), Duration::ZERO);
        assert_eq!(waits.record(&later, after(42)), Duration::from_secs(1));
        // The keys were there in between.
        assert_eq!(waits.record(&later, after(42) + REMEMBERED_FOR), Duration::ZERO);
    }

    #[test]
    fn the_pause_grows_with_the_wait() {
        let pauses = [0, 1, 4, 60].map(|waited| pause_after(Duration::from_secs(waited)).as_secs());
        assert_eq!(pauses, [1, 1, 4, 10]);
        assert!(LONGEST_PAUSE < REPORTED_AFTER && REPORTED_AFTER < REMEMBERED_FOR);
    }
}
