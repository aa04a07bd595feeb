//! How many shoots may have a grant for a seed at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use api::gardencore::{Shoot, shoot::ShootStatus};
use kube::ResourceExt;
use placement::{preparation, recorded_preparation};

use super::decision::requested;

/// The grants for each seed: those that Shoots record, and those of this process that the store of Shoots may
/// not show yet.
pub(super) struct GrantSlots {
    most: usize,
    /// Each grant that this process has given or has kept, by the uid of the Shoot.
    reserved: Mutex<BTreeMap<String, ReservedGrant>>,
}

/// A grant for a residency of the shoot.
#[derive(Debug, PartialEq, Eq)]
struct ReservedGrant {
    destination: String,
    source: String,
    epoch: i64,
}

impl ReservedGrant {
    /// The grant for the present residency.
    fn new(shoot: &Shoot, destination: &str) -> Self {
        let status = shoot.status.as_ref();
        let host = status.and_then(|status| status.seed_name.clone());
        Self {
            destination: destination.to_owned(),
            source: host.unwrap_or_default(),
            epoch: status.map_or(1, ShootStatus::epoch),
        }
    }
}

impl GrantSlots {
    /// `most`: the number of shoots that may have a grant for the same seed.
    pub(super) fn new(most: u16) -> Self {
        Self {
            most: most.into(),
            reserved: Mutex::default(),
        }
    }

    /// Reserves a slot of the seed for the Shoot. `known`: all Shoots.
    ///
    /// # Errors
    /// The number of other shoots with a grant for the seed, if no slot is free.
    pub(super) fn reserve(&self, shoot: &Shoot, seed: &str, known: &[Arc<Shoot>]) -> Result<(), usize> {
        let own = shoot.uid().unwrap_or_default();
        let existing: BTreeSet<String> = known.iter().filter_map(|other| other.uid()).collect();
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        // A Shoot that is gone has no further reconciliation that releases the slot.
        reserved.retain(|uid, _| existing.contains(uid));
        let recorded = known
            .iter()
            .filter(|other| recorded_preparation(other).is_some_and(|granted| granted.destination == seed));
        let mut holders: BTreeSet<String> = recorded.filter_map(|other| other.uid()).collect();
        let of_seed = reserved.iter().filter(|(_, grant)| grant.destination == seed);
        holders.extend(of_seed.map(|(uid, _)| uid.clone()));
        holders.remove(&own);
        if holders.len() >= self.most {
            return Err(holders.len());
        }
        reserved.insert(own, ReservedGrant::new(shoot, seed));
        Ok(())
    }

    /// Notes the valid grant that the Shoot records, also a grant of a former process.
    pub(super) fn note_recorded(&self, shoot: &Shoot) {
        let Some(granted) = preparation(shoot) else {
            return;
        };
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let grant = ReservedGrant::new(shoot, &granted.destination);
        reserved.insert(shoot.uid().unwrap_or_default(), grant);
    }

    /// Whether the host has removed the grant of the present residency: the request stands, and this process
    /// has not withdrawn the grant. A new grant would have a later expiry, without end.
    pub(super) fn is_grant_removed(&self, shoot: &Shoot) -> bool {
        let Some(wanted) = requested(shoot).filter(|_| recorded_preparation(shoot).is_none()) else {
            return false;
        };
        let reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        let granted = reserved.get(&shoot.uid().unwrap_or_default());
        granted == Some(&ReservedGrant::new(shoot, wanted))
    }

    /// Releases the slot of the Shoot.
    pub(super) fn release(&self, shoot: &Shoot) {
        let mut reserved = self.reserved.lock().unwrap_or_else(PoisonError::into_inner);
        reserved.remove(&shoot.uid().unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::constants::MIGRATION_PREPARE;
    use serde_json::json;

    use super::*;

    /// A Shoot with a grant for this seed.
    fn shoot(uid: &str, seed: Option<&str>) -> Arc<Shoot> {
        let preparation = seed.map(|seed| {
            json!({"uid": uid, "source": "a", "destination": seed, "epoch": 1, "expiry": "2026-01-01T00:00:00Z"})
        });
        serde_json::from_value(json!({
            "metadata": {"name": uid, "uid": uid},
            "spec": {"region": "r", "seedName": "a", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"seedName": "a", "liveMigration": {"preparation": preparation}},
        }))
        .map(Arc::new)
        .unwrap()
    }

    #[test]
    fn recorded_and_reserved_grants_count_for_their_seed() {
        let slots = GrantSlots::new(2);
        let known = [
            shoot("recorded", Some("b")),
            shoot("elsewhere", Some("c")),
            shoot("early", None),
            shoot("late", None),
        ];
        assert_eq!(slots.reserve(&known[2], "b", &known), Ok(()));
        // The store does not show the grant of `early` yet.
        assert_eq!(slots.reserve(&known[3], "b", &known), Err(2));
        // A grant that is written again needs no second slot.
        assert_eq!(slots.reserve(&known[0], "b", &known), Ok(()));
        assert_eq!(slots.reserve(&known[3], "c", &known), Ok(()));
        slots.release(&known[2]);
        assert_eq!(slots.reserve(&known[3], "b", &known), Ok(()));
    }

    /// A change of the destination frees the slot of the former destination.
    #[test]
    fn a_shoot_has_one_slot() {
        let slots = GrantSlots::new(1);
        let known = [shoot("mover", None), shoot("other", None)];
        assert_eq!(slots.reserve(&known[0], "b", &known), Ok(()));
        assert_eq!(slots.reserve(&known[0], "c", &known), Ok(()));
        assert_eq!(slots.reserve(&known[1], "b", &known), Ok(()));
        assert_eq!(slots.reserve(&known[1], "c", &known), Err(1));
    }

    /// The host may remove the field at any time. A change of the host, of the epoch or of the request needs
    /// a new judgement instead.
    #[test]
    fn a_grant_that_the_host_has_removed_is_known() {
        let slots = GrantSlots::new(1);
        let on = |host: &str, epoch: i64, wanted: &str, granted: bool| -> Shoot {
            let grant = json!({"uid": "u", "source": "a", "destination": "b", "epoch": 3, "expiry": "2026-01-01T00:00:00Z"});
            let grant = granted.then_some(grant);
            serde_json::from_value(json!({
                "metadata": {"name": "web", "uid": "u", "annotations": {(MIGRATION_PREPARE): wanted}},
                "spec": {"region": "r", "seedName": "a", "provider": {"type": "t"}, "kubernetes": {}},
                "status": {"seedName": host, "ownership": {"epoch": epoch}, "liveMigration": {"preparation": grant}},
            }))
            .unwrap()
        };
        let (recorded, removed) = (on("a", 3, "b", true), on("a", 3, "b", false));
        assert!(!slots.is_grant_removed(&removed), "a first request");
        slots
            .reserve(&removed, "b", &[Arc::new(removed.clone())])
            .unwrap();
        assert!(!slots.is_grant_removed(&recorded));
        assert!(slots.is_grant_removed(&removed));
        for changed in [
            on("c", 3, "b", false),
            on("a", 4, "b", false),
            on("a", 3, "c", false),
            on("a", 3, "", false),
        ] {
            assert!(!slots.is_grant_removed(&changed));
        }
        slots.release(&removed);
        assert!(!slots.is_grant_removed(&removed), "withdrawn by this process");
        // After a restart of the process.
        slots.note_recorded(&removed);
        assert!(!slots.is_grant_removed(&removed));
        slots.note_recorded(&recorded);
        assert!(slots.is_grant_removed(&removed));
    }

    #[test]
    fn a_shoot_that_is_gone_holds_no_slot() {
        let slots = GrantSlots::new(1);
        let known = [shoot("gone", None), shoot("next", None)];
        assert_eq!(slots.reserve(&known[0], "b", &known), Ok(()));
        assert_eq!(slots.reserve(&known[1], "b", &known), Err(1));
        assert_eq!(slots.reserve(&known[1], "b", &known[1..]), Ok(()));
    }
}
