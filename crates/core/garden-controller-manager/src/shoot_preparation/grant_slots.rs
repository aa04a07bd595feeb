//! How many shoots may have a grant for a seed at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use api::gardencore::Shoot;
use kube::ResourceExt;
use placement::recorded_preparation;

/// The grants for each seed: those that Shoots record, and those of this process that the store of Shoots may
/// not show yet.
pub(super) struct GrantSlots {
    most: usize,
    /// The destination of each grant of this process, by the uid of the Shoot.
    reserved: Mutex<BTreeMap<String, String>>,
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
        let of_seed = reserved.iter().filter(|(_, destination)| *destination == seed);
        holders.extend(of_seed.map(|(uid, _)| uid.clone()));
        holders.remove(&own);
        if holders.len() >= self.most {
            return Err(holders.len());
        }
        reserved.insert(own, seed.to_owned());
        Ok(())
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

    #[test]
    fn a_shoot_that_is_gone_holds_no_slot() {
        let slots = GrantSlots::new(1);
        let known = [shoot("gone", None), shoot("next", None)];
        assert_eq!(slots.reserve(&known[0], "b", &known), Ok(()));
        assert_eq!(slots.reserve(&known[1], "b", &known), Err(1));
        assert_eq!(slots.reserve(&known[1], "b", &known[1..]), Ok(()));
    }
}
