//! How many shoots may have a grant for a seed at a time.
//!
//! A free slot goes to the shoot that has waited longest. The shoots of a project that holds half of the
//! slots, and at least one, come after the waiting shoots of other projects. A waiting shoot that makes no
//! request for a while holds up no other shoot (`slot_claims`).

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    sync::{Arc, Mutex, PoisonError},
};

use api::{
    constants::condition::PREPARED,
    gardencore::{Shoot, shoot::ShootStatus},
    meta::{ConditionStatus, find_condition},
};
use jiff::Timestamp;
use kube::ResourceExt;
use placement::{preparation, recorded_preparation};

use super::decision::requested;
use crate::slot_claims::SlotClaims;

/// The reason of a request that waits for a slot.
pub(super) const BUSY: &str = "DestinationSeedBusy";

/// The grants for each seed: those that Shoots record, and those of this process that the store of Shoots may
/// not show yet.
pub(super) struct GrantSlots {
    most: usize,
    state: Mutex<GrantState>,
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

#[derive(Default)]
struct GrantState {
    /// Each grant that this process has given or has kept, by the uid of the Shoot.
    reserved: BTreeMap<String, ReservedGrant>,
    claims: SlotClaims,
}

/// The order of the requests for a slot: whether the project has its share, since when the shoot waits, and
/// the uid.
type Rank = (bool, Timestamp, String);

impl GrantSlots {
    /// `most`: the number of shoots that may have a grant for the same seed.
    pub(super) fn new(most: u16) -> Self {
        Self {
            most: most.into(),
            state: Mutex::default(),
        }
    }

    /// Reserves a slot of the seed for the Shoot. `known`: all Shoots.
    ///
    /// # Errors
    /// The number of other shoots with a grant for the seed, if no slot is free for this shoot.
    pub(super) fn reserve(
        &self,
        shoot: &Shoot,
        seed: &str,
        known: &[Arc<Shoot>],
        now: Timestamp,
    ) -> Result<(), usize> {
        let own = shoot.uid().unwrap_or_default();
        let existing: BTreeSet<String> = known.iter().filter_map(|other| other.uid()).collect();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A Shoot that is gone has no further reconciliation that releases the slot.
        state.reserved.retain(|uid, _| existing.contains(uid));
        state.claims.observe(&all_waiting(known), now);
        let holds = |uid: &String, other: &Shoot| {
            let recorded = recorded_preparation(other).is_some_and(|granted| granted.destination == seed);
            *uid != own
                && (recorded
                    || state
                        .reserved
                        .get(uid)
                        .is_some_and(|grant| grant.destination == seed))
        };
        let holders: Vec<&Arc<Shoot>> = known
            .iter()
            .filter(|other| other.uid().is_some_and(|uid| holds(&uid, other)))
            .collect();
        let rank = |candidate: &Shoot, since: Timestamp| -> Rank {
            let project = candidate.namespace();
            let held = holders.iter().filter(|holder| holder.namespace() == project);
            let has_share = held.count() >= (self.most / 2).max(1);
            (has_share, since, candidate.uid().unwrap_or_default())
        };
        let own_rank = rank(shoot, waits_since(shoot).unwrap_or(now));
        let earlier = known.iter().filter(|other| {
            let uid = other.uid().unwrap_or_default();
            let since = waits_since(other).filter(|_| requested(other) == Some(seed) && uid != own);
            state.claims.is_valid(&uid, now) && since.is_some_and(|since| rank(other, since) < own_rank)
        });
        let (granted, earlier) = (holders.len(), earlier.count());
        if granted + earlier >= self.most {
            state.claims.refuse(own, now);
            return Err(granted);
        }
        state.claims.grant(own.clone());
        state.reserved.insert(own, ReservedGrant::new(shoot, seed));
        Ok(())
    }

    /// Notes the valid grant that the Shoot records, also a grant of a former process.
    pub(super) fn note_recorded(&self, shoot: &Shoot) {
        let Some(granted) = preparation(shoot) else {
            return;
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let grant = ReservedGrant::new(shoot, &granted.destination);
        state.reserved.insert(shoot.uid().unwrap_or_default(), grant);
    }

    /// Whether the host has removed the grant of the present residency: the request stands, and this process
    /// has not withdrawn the grant. A new grant would have a later expiry, without end.
    pub(super) fn is_grant_removed(&self, shoot: &Shoot) -> bool {
        let Some(wanted) = requested(shoot).filter(|_| recorded_preparation(shoot).is_none()) else {
            return false;
        };
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let granted = state.reserved.get(&shoot.uid().unwrap_or_default());
        granted == Some(&ReservedGrant::new(shoot, wanted))
    }

    /// Releases the slot of the Shoot.
    pub(super) fn release(&self, shoot: &Shoot) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.reserved.remove(&shoot.uid().unwrap_or_default());
    }
}

/// Since when the Shoot waits for a slot.
fn waits_since(shoot: &Shoot) -> Option<Timestamp> {
    let recorded = shoot.status.as_ref()?.live_migration.as_ref()?;
    let prepared = find_condition(&recorded.conditions, PREPARED)?;
    let waits = prepared.status == ConditionStatus::False && prepared.reason == BUSY;
    waits.then_some(prepared.last_transition_time.0)
}

/// The uids of the Shoots that wait for a slot of any seed.
fn all_waiting(known: &[Arc<Shoot>]) -> HashSet<String> {
    let waiting = known.iter().filter(|shoot| waits_since(shoot).is_some());
    waiting.filter_map(|shoot| shoot.uid()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::{constants::MIGRATION_PREPARE, gardencore::shoot::LiveMigrationStatus, meta::Condition};
    use jiff::SignedDuration;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::json;

    use super::*;

    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

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
        assert_eq!(slots.reserve(&known[2], "b", &known, NOW), Ok(()));
        // The store does not show the grant of `early` yet.
        assert_eq!(slots.reserve(&known[3], "b", &known, NOW), Err(2));
        // A grant that is written again needs no second slot.
        assert_eq!(slots.reserve(&known[0], "b", &known, NOW), Ok(()));
        assert_eq!(slots.reserve(&known[3], "c", &known, NOW), Ok(()));
        slots.release(&known[2]);
        assert_eq!(slots.reserve(&known[3], "b", &known, NOW), Ok(()));
    }

    /// A change of the destination frees the slot of the former destination.
    #[test]
    fn a_shoot_has_one_slot() {
        let slots = GrantSlots::new(1);
        let known = [shoot("mover", None), shoot("other", None)];
        assert_eq!(slots.reserve(&known[0], "b", &known, NOW), Ok(()));
        assert_eq!(slots.reserve(&known[0], "c", &known, NOW), Ok(()));
        assert_eq!(slots.reserve(&known[1], "b", &known, NOW), Ok(()));
        assert_eq!(slots.reserve(&known[1], "c", &known, NOW), Err(1));
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
            .reserve(&removed, "b", &[Arc::new(removed.clone())], NOW)
            .unwrap();
        assert!(!slots.is_grant_removed(&recorded));
        assert!(slots.is_grant_removed(&removed));
        for (host, epoch, wanted) in [("c", 3, "b"), ("a", 4, "b"), ("a", 3, "c"), ("a", 3, "")] {
            let changed = on(host, epoch, wanted, false);
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
        assert_eq!(slots.reserve(&known[0], "b", &known, NOW), Ok(()));
        assert_eq!(slots.reserve(&known[1], "b", &known, NOW), Err(1));
        assert_eq!(slots.reserve(&known[1], "b", &known[1..], NOW), Ok(()));
    }

    /// A Shoot of the project that waits for a grant for seed `b`, for this number of seconds.
    fn waiting(project: &str, uid: &str, seconds: i64) -> Arc<Shoot> {
        let mut shoot = Arc::unwrap_or_clone(of_project(project, &shoot(uid, None)));
        let since = Time(NOW - SignedDuration::from_secs(seconds));
        let waits = Condition::new(PREPARED, ConditionStatus::False, BUSY, "m", since);
        shoot.status.get_or_insert_default().live_migration = Some(LiveMigrationStatus {
            preparation: None,
            conditions: vec![waits],
        });
        shoot
            .annotations_mut()
            .insert(MIGRATION_PREPARE.to_owned(), "b".to_owned());
        Arc::new(shoot)
    }

    fn of_project(project: &str, shoot: &Arc<Shoot>) -> Arc<Shoot> {
        let mut shoot = Shoot::clone(shoot);
        shoot.metadata.namespace = Some(project.to_owned());
        Arc::new(shoot)
    }

    #[test]
    fn the_shoot_that_has_waited_longest_is_next() {
        let slots = GrantSlots::new(2);
        let known = [
            of_project("p", &shoot("holder", Some("b"))),
            waiting("q", "first", 20),
            waiting("r", "second", 10),
            of_project("s", &shoot("new", None)),
        ];
        let reserve = |shoot: &Shoot, now| slots.reserve(shoot, "b", &known, now);
        assert_eq!(reserve(&known[2], NOW), Err(1));
        assert_eq!(reserve(&known[3], NOW), Err(1), "a new request comes last");
        // Slots of a different seed.
        assert_eq!(slots.reserve(&known[3], "c", &known, NOW), Ok(()));
        slots.release(&known[3]);
        // The first shoot makes no request.
        let late = NOW + SignedDuration::from_mins(4);
        assert_eq!(reserve(&known[2], late), Ok(()));
        assert_eq!(reserve(&known[1], late), Err(2));
    }

    /// Otherwise one project holds all grants of a seed for a day, and requests each grant again.
    #[test]
    fn a_project_with_half_of_the_grants_comes_after_other_projects() {
        let known = [
            of_project("p", &shoot("holder", Some("b"))),
            waiting("p", "longest", 20),
            waiting("q", "other", 10),
        ];
        let reserve =
            |shoot: &Shoot, known: &[Arc<Shoot>]| GrantSlots::new(2).reserve(shoot, "b", known, NOW);
        assert_eq!(reserve(&known[1], &known), Err(1));
        assert_eq!(reserve(&known[2], &known), Ok(()));
        assert_eq!(reserve(&known[1], &known[..2]), Ok(()), "no other project waits");
        // A project may have a single slot.
        let free = [waiting("p", "longest", 20), waiting("q", "other", 10)];
        let slots = GrantSlots::new(1);
        assert_eq!(slots.reserve(&free[1], "b", &free, NOW), Err(0));
        assert_eq!(slots.reserve(&free[0], "b", &free, NOW), Ok(()));
    }
}
