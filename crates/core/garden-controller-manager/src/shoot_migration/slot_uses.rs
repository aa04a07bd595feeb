//! The changes of a Shoot that may leave a free slot to a waiting shoot: a shoot on its way arrives or fails,
//! and a shoot stops waiting without a slot. Waiting shoots leave a slot to the first of these shoots, also
//! where the checks of that shoot fail afterwards.
//!
//! The controller records the Shoots of the cache, so that a woken shoot finds the change in the cache. The
//! end of an approval wakes waiting shoots also at the write of this process, before the cache shows the end.
//! The end of a deleted Shoot is noticed with the next change of a further shoot, or by the next check of a
//! waiting shoot, after `SLOT_REQUEUE` of the controller.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
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

    fn into_destination(self) -> String {
        match self {
            Self::Waits(destination) | Self::Holds(destination) => destination,
        }
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
            (former, _) => Some(former.into_destination()),
        }
    }

    /// Drops the records of Shoots that do not exist. Returns the destinations of these records: the Shoots
    /// have left the slots. `known` reads all Shoots under the lock: a list from before would drop the record
    /// of a new Shoot.
    pub(super) fn drop_deleted(&self, known: impl FnOnce() -> Vec<Arc<Shoot>>) -> BTreeSet<String> {
        let mut uses = self.lock();
        let known = known();
        let uids = known.iter().filter_map(|shoot| shoot.metadata.uid.as_deref());
        let uids: HashSet<&str> = uids.collect();
        let deleted = uses.extract_if(|uid, _| !uids.contains(uid.as_str()));
        deleted.map(|(_, slot_use)| slot_use.into_destination()).collect()
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
    fn a_record_ends_with_the_use_and_not_with_a_further_deletion() {
        let (uses, now) = (SlotUses::default(), Timestamp::UNIX_EPOCH);
        let going = leaves("b", "Processing");
        uses.record(&going, now);
        assert!(uses.is_recorded(&going));
        uses.record(&leaves("b", "Failed"), now);
        assert!(!uses.is_recorded(&going));
        uses.record(&going, now);
        assert!(uses.drop_deleted(|| vec![Arc::new(going.clone())]).is_empty());
        assert!(uses.is_recorded(&going));
    }

    /// Otherwise the slot of a deleted Shoot stays idle until the next check of a waiting shoot.
    #[test]
    fn a_deleted_shoot_leaves_its_slot_once() {
        let (uses, now) = (SlotUses::default(), Timestamp::UNIX_EPOCH);
        let going = leaves("b", "Processing");
        uses.record(&going, now);
        assert!(uses.drop_deleted(Vec::new).iter().eq(["b"]));
        assert!(!uses.is_recorded(&going));
        assert!(uses.drop_deleted(Vec::new).is_empty());
    }

    /// A list from before would drop the record of a Shoot that was recorded meanwhile.
    #[test]
    fn the_shoots_are_read_under_the_lock_of_the_records() {
        let uses = SlotUses::default();
        uses.drop_deleted(|| {
            assert!(uses.0.try_lock().is_err());
            Vec::new()
        });
    }
}
