//! The changes of a Shoot that may leave a free slot to a waiting shoot: a shoot on its way arrives or fails,
//! and a shoot stops waiting without a slot. Waiting shoots leave a slot to the first of these shoots, also
//! where the checks of that shoot fail afterwards.
//!
//! The controller records the Shoots of the cache, so that a woken shoot finds the change in the cache. The
//! end of an approval wakes waiting shoots also at the write of this process, before the cache shows the end.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use api::gardencore::Shoot;
use jiff::Timestamp;

use super::{
    migration_slots::{is_on_its_way_to, waits_since},
    preflight::wanted_move,
};

/// The use of the slots of a destination by a shoot.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SlotUse {
    Waits(String),
    Holds(String),
}

impl SlotUse {
    fn new(shoot: &Shoot, now: Timestamp) -> Option<Self> {
        let status = shoot.status.as_ref()?;
        if let Some(approval) = &status.migration
            && is_on_its_way_to(shoot, &approval.destination, now)
        {
            return Some(Self::Holds(approval.destination.clone()));
        }
        let (_, destination) = wanted_move(shoot).filter(|_| waits_since(shoot).is_some())?;
        Some(Self::Waits(destination.to_owned()))
    }
}

/// The last use of slots by each shoot, by the uid of the Shoot.
#[derive(Debug, Default)]
pub(super) struct SlotUses(Mutex<HashMap<String, SlotUse>>);

impl SlotUses {
    /// Whether a use of slots by this shoot is recorded. The next change may be the end of the use.
    pub(super) fn is_recorded(&self, shoot: &Shoot) -> bool {
        let uid = shoot.metadata.uid.as_ref();
        uid.is_some_and(|uid| self.lock().contains_key(uid))
    }

    /// Records the present use. Returns the destination whose slots the shoot has left since the last call.
    pub(super) fn record(&self, shoot: &Shoot, now: Timestamp) -> Option<String> {
        let uid = shoot.metadata.uid.clone()?;
        let present = SlotUse::new(shoot, now);
        let mut uses = self.lock();
        let former = match &present {
            Some(present) => uses.insert(uid, present.clone()),
            None => uses.remove(&uid),
        };
        match (former?, present) {
            (former, Some(present)) if former == present => None,
            (SlotUse::Waits(from), Some(SlotUse::Holds(to))) if from == to => None,
            (SlotUse::Waits(left) | SlotUse::Holds(left), _) => Some(left),
        }
    }

    /// Drops the records of Shoots that do not exist. `known`: all Shoots.
    pub(super) fn retain(&self, known: &[Arc<Shoot>]) {
        let uids = known.iter().filter_map(|shoot| shoot.metadata.uid.as_deref());
        let uids: HashSet<&str> = uids.collect();
        self.lock().retain(|uid, _| uids.contains(uid.as_str()));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, SlotUse>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    /// A shoot on seed `a` that wants to move.
    fn shoot(to: &str, status: &Value) -> Shoot {
        let mut shoot = json!({
            "metadata": {"name": "web", "uid": "u"},
            "spec": {"seedName": to, "region": "r", "provider": {"type": "t"}, "kubernetes": {}},
            "status": status,
        });
        shoot["status"]["seedName"] = json!("a");
        serde_json::from_value(shoot).unwrap()
    }

    fn waits(to: &str, reason: &str) -> Shoot {
        let constraint = json!({"type": "ReadyForMigration", "status": "False", "reason": reason, "message": "",
            "lastTransitionTime": "1970-01-01T00:00:00Z", "lastUpdateTime": "1970-01-01T00:00:00Z"});
        shoot(to, &json!({"constraints": [constraint]}))
    }

    fn leaves(to: &str, state: &str) -> Shoot {
        let last = json!({"type": "Migrate", "state": state, "progress": 0, "description": "",
            "lastUpdateTime": "1970-01-01T00:00:00Z"});
        let approval = json!({"source": "a", "destination": to, "generation": 1, "spec": {}});
        shoot(to, &json!({"migration": approval, "lastOperation": last}))
    }

    /// The destinations that are left, for the versions of a Shoot one after the other.
    fn left(versions: &[Shoot]) -> Vec<Option<String>> {
        let uses = SlotUses::default();
        let now = Timestamp::UNIX_EPOCH;
        versions.iter().map(|shoot| uses.record(shoot, now)).collect()
    }

    /// Otherwise the slot stays idle until the next check of a waiting shoot.
    #[test]
    fn a_waiting_shoot_whose_checks_fail_leaves_the_slots() {
        let busy = waits("b", "DestinationSeedBusy");
        let fails = waits("b", "ShootNotHealthy");
        let versions = vec![busy.clone(), busy.clone(), fails.clone(), fails];
        assert_eq!(left(&versions), [None, None, Some("b".to_owned()), None]);
        let elsewhere = waits("c", "DestinationSeedBusy");
        assert_eq!(left(&[busy.clone(), elsewhere]), [None, Some("b".to_owned())]);
        assert_eq!(left(&[busy, leaves("b", "Processing")]), [None, None]);
    }

    #[test]
    fn a_shoot_that_fails_on_its_way_leaves_its_slot_once() {
        let [going, failed] = ["Processing", "Failed"].map(|state| leaves("b", state));
        let versions = vec![going.clone(), failed.clone(), failed, going.clone()];
        assert_eq!(left(&versions), [None, Some("b".to_owned()), None, None]);
        let redirected = leaves("c", "Processing");
        assert_eq!(left(&[going, redirected]), [None, Some("b".to_owned())]);
    }

    #[test]
    fn a_record_ends_with_the_use_or_with_the_shoot() {
        let (uses, now) = (SlotUses::default(), Timestamp::UNIX_EPOCH);
        let going = leaves("b", "Processing");
        uses.record(&going, now);
        assert!(uses.is_recorded(&going));
        uses.record(&leaves("b", "Failed"), now);
        assert!(!uses.is_recorded(&going));
        uses.record(&going, now);
        uses.retain(&[Arc::new(going.clone())]);
        assert!(uses.is_recorded(&going));
        uses.retain(&[]);
        assert!(!uses.is_recorded(&going));
    }
}
