//! The shoots for which the gate in front of etcd may admit a destination, because this process has listed a
//! certificate. After a restart the memory is empty: the list at the gate ends by itself.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use parts::PreparationState;
use tokio::time::Instant;

/// Longer than the validity of a list, with the time of the request.
const REMEMBERED_FOR: Duration = Duration::from_secs(2 * PreparationState::LISTED_FOR.as_secs());

struct List {
    epoch: i64,
    until: Instant,
}

/// The newest list of each shoot, by the uid of the Shoot.
#[derive(Default)]
pub(super) struct ListedShoots(Mutex<BTreeMap<String, List>>);

impl ListedShoots {
    /// A list is sent for a grant in this epoch. Recorded before the request: the answer may get lost.
    pub(super) fn record(&self, uid: &str, epoch: i64, now: Instant) {
        let until = now + REMEMBERED_FOR;
        self.lists().insert(uid.to_owned(), List { epoch, until });
    }

    /// The epoch of a list that may still be valid.
    pub(super) fn epoch(&self, uid: &str, now: Instant) -> Option<i64> {
        let mut lists = self.lists();
        lists.retain(|_, list| list.until > now);
        lists.get(uid).map(|list| list.epoch)
    }

    /// The gate has confirmed an empty list.
    pub(super) fn forget(&self, uid: &str) {
        self.lists().remove(uid);
    }

    fn lists(&self) -> MutexGuard<'_, BTreeMap<String, List>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of a grant is reported to the gate of each shoot with a list, and to no other gate.
    #[test]
    fn a_list_is_withdrawn_until_the_gate_confirms_or_the_list_has_ended() {
        let (listed, now) = (ListedShoots::default(), Instant::now());
        assert_eq!(listed.epoch("u", now), None);
        listed.record("u", 3, now);
        listed.record("v", 5, now);
        let end = now + PreparationState::LISTED_FOR;
        assert_eq!(listed.epoch("u", end), Some(3));
        assert_eq!(listed.epoch("w", end), None);
        listed.forget("u");
        assert_eq!(listed.epoch("u", end), None);
        // A gate that does not answer any more.
        assert_eq!(listed.epoch("v", end), Some(5));
        assert_eq!(listed.epoch("v", now + REMEMBERED_FOR), None);
        // A later grant in a later epoch.
        listed.record("v", 7, end);
        assert_eq!(listed.epoch("v", end), Some(7));
    }
}
