//! How many shoots may have a grant for a seed at a time, and until when.
//!
//! A free slot goes to the shoot that has waited longest. The shoots of a project that holds half of the
//! slots, and at least one, come after the waiting shoots of other projects. A waiting shoot that makes no
//! request for a while holds up no other shoot (`slot_claims`). The time of the first refusal is a record of
//! this process, because a seed with a grant writes the condition of the Shoot, too.
//!
//! A grant can be withdrawn while the request stands: the destination is silent for a time. Each further
//! grant of the residency ends before the former grant, so that no silence prolongs a preparation.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use api::{
    constants::condition::PREPARED,
    gardencore::{Shoot, shoot::ShootStatus},
    meta::{ConditionStatus, find_condition},
};
use jiff::{SignedDuration, Timestamp};
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
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// The end of the last grant for a residency, also after a withdrawal.
struct GrantExpiry {
    grant: ReservedGrant,
    expiry: Timestamp,
}

/// A request that waits for a slot of this seed.
struct WaitingRequest {
    destination: String,
    since: Timestamp,
}

/// The records of this process, by the uid of the Shoot.
#[derive(Default)]
struct GrantState {
    /// Each grant that this process has given or has kept.
    reserved: BTreeMap<String, ReservedGrant>,
    expiries: BTreeMap<String, GrantExpiry>,
    waiting: BTreeMap<String, WaitingRequest>,
    claims: SlotClaims,
}

impl GrantState {
    /// Drops the records of Shoots that are gone, and of requests that wait no longer. A Shoot that a former
    /// process has refused waits from this time on. `known`: all Shoots.
    fn observe(&mut self, known: &[Arc<Shoot>], now: Timestamp) {
        let requests: BTreeMap<String, Option<&str>> = known
            .iter()
            .filter_map(|shoot| Some((shoot.uid()?, requested(shoot))))
            .collect();
        // A Shoot that is gone has no further reconciliation that releases the slot.
        self.reserved.retain(|uid, _| requests.contains_key(uid));
        self.expiries.retain(|uid, _| requests.contains_key(uid));
        self.waiting.retain(|uid, request| {
            let wanted = requests.get(uid).copied().flatten();
            wanted == Some(request.destination.as_str())
        });
        for shoot in known.iter().filter(|shoot| reports_wait(shoot)) {
            if let (Some(uid), Some(seed)) = (shoot.uid(), requested(shoot))
                && !self.reserved.contains_key(&uid)
            {
                self.waiting.entry(uid).or_insert_with(|| WaitingRequest {
                    destination: seed.to_owned(),
                    since: now,
                });
            }
        }
        let waiting = self.waiting.keys().cloned().collect();
        self.claims.observe(&waiting, now);
    }

    /// Records a refused request. A repeated request keeps the time of the first refusal.
    fn refuse(&mut self, uid: String, seed: &str, now: Timestamp) {
        self.claims.refuse(uid.clone(), now);
        let waiting = self.waiting.get(&uid);
        if waiting.is_none_or(|request| request.destination != seed) {
            let request = WaitingRequest {
                destination: seed.to_owned(),
                since: now,
            };
            self.waiting.insert(uid, request);
        }
    }

    /// Since when the Shoot waits for a slot of the seed.
    fn waits_since(&self, uid: &str, seed: &str) -> Option<Timestamp> {
        let request = self.waiting.get(uid)?;
        (request.destination == seed).then_some(request.since)
    }
}

/// The order of the requests for a slot: whether the project has its share, whether the request is new, since
/// when the shoot waits, and the uid.
type Rank = (bool, bool, Option<Timestamp>, String);

impl GrantSlots {
    /// `most`: the number of shoots that may have a grant for the same seed.
    pub(super) fn new(most: u16) -> Self {
        Self {
            most: most.into(),
            state: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, GrantState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the Shoot has a request, fields of a preparation, or a record of this process. The host may
    /// remove the fields directly after a user has removed the request: the record is still to be dropped.
    pub(super) fn concerns(&self, shoot: &Shoot) -> bool {
        let status = shoot.status.as_ref();
        let has_fields = status.is_some_and(|status| status.live_migration.is_some());
        requested(shoot).is_some() || has_fields || self.has_record(&shoot.uid().unwrap_or_default())
    }

    fn has_record(&self, uid: &str) -> bool {
        let state = self.lock();
        state.reserved.contains_key(uid)
            || state.expiries.contains_key(uid)
            || state.waiting.contains_key(uid)
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
        let mut state = self.lock();
        state.observe(known, now);
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
        // Counted once for the ranks of all waiting shoots.
        let mut held: BTreeMap<Option<&str>, usize> = BTreeMap::new();
        for holder in &holders {
            *held.entry(holder.metadata.namespace.as_deref()).or_default() += 1;
        }
        let rank = |candidate: &Shoot, since: Option<Timestamp>| -> Rank {
            let of_project = held.get(&candidate.metadata.namespace.as_deref()).copied();
            let has_share = of_project.unwrap_or_default() >= (self.most / 2).max(1);
            (
                has_share,
                since.is_none(),
                since,
                candidate.uid().unwrap_or_default(),
            )
        };
        let own_rank = rank(shoot, state.waits_since(&own, seed));
        let earlier = known.iter().filter(|other| {
            let uid = other.uid().unwrap_or_default();
            let since = state.waits_since(&uid, seed).filter(|_| uid != own);
            state.claims.is_valid(&uid, now) && since.is_some() && rank(other, since) < own_rank
        });
        let (granted, earlier) = (holders.len(), earlier.count());
        if granted + earlier >= self.most {
            state.refuse(own, seed, now);
            return Err(granted);
        }
        state.claims.grant(own.clone());
        state.reserved.insert(own, ReservedGrant::new(shoot, seed));
        Ok(())
    }

    /// The expiry of a new grant: `longest`, but before the end of the former grant of the residency. Two
    /// grants of an epoch differ in the expiry, because the expiry is in the name of the object with the
    /// keys.
    pub(super) fn next_expiry(&self, shoot: &Shoot, destination: &str, longest: Timestamp) -> Timestamp {
        let grant = ReservedGrant::new(shoot, destination);
        let state = self.lock();
        let former = state.expiries.get(&shoot.uid().unwrap_or_default());
        former
            .filter(|former| former.grant == grant)
            .map_or(longest, |former| {
                let earlier = former.expiry.checked_sub(SignedDuration::from_secs(1));
                longest.min(earlier.unwrap_or(former.expiry))
            })
    }

    /// Records the expiry of a grant that was written.
    pub(super) fn note_granted(&self, shoot: &Shoot, destination: &str, expiry: Timestamp) {
        let grant = ReservedGrant::new(shoot, destination);
        let uid = shoot.uid().unwrap_or_default();
        self.lock().expiries.insert(uid, GrantExpiry { grant, expiry });
    }

    /// The expiry of the last grant of the residency, if this expiry is over and the Shoot records no grant.
    pub(super) fn expired(&self, shoot: &Shoot, now: Timestamp) -> Option<Timestamp> {
        let wanted = requested(shoot).filter(|_| recorded_preparation(shoot).is_none())?;
        let state = self.lock();
        let last = state.expiries.get(&shoot.uid().unwrap_or_default())?;
        let is_over = last.expiry <= now && last.grant == ReservedGrant::new(shoot, wanted);
        is_over.then_some(last.expiry)
    }

    /// Notes the valid grant that the Shoot records, also a grant of a former process.
    pub(super) fn note_recorded(&self, shoot: &Shoot) {
        let Some(granted) = preparation(shoot) else {
            return;
        };
        let grant = ReservedGrant::new(shoot, &granted.destination);
        let (uid, expiry) = (shoot.uid().unwrap_or_default(), granted.expiry.0);
        let mut state = self.lock();
        if state.waits_since(&uid, &granted.destination).is_some() {
            state.waiting.remove(&uid);
        }
        state.reserved.insert(uid.clone(), grant.clone());
        state.expiries.insert(uid, GrantExpiry { grant, expiry });
    }

    /// Whether the host has removed the grant of the present residency: the request stands, and this process
    /// has not withdrawn the grant. A further grant would meet the same end, again and again.
    pub(super) fn is_grant_removed(&self, shoot: &Shoot) -> bool {
        let Some(wanted) = requested(shoot).filter(|_| recorded_preparation(shoot).is_none()) else {
            return false;
        };
        let state = self.lock();
        let granted = state.reserved.get(&shoot.uid().unwrap_or_default());
        granted == Some(&ReservedGrant::new(shoot, wanted))
    }

    /// Releases the slot of the Shoot. The request stands: the expiry and the place of the shoot stay.
    pub(super) fn release(&self, shoot: &Shoot) {
        self.lock().reserved.remove(&shoot.uid().unwrap_or_default());
    }

    /// Drops all records of a request that has ended.
    pub(super) fn forget(&self, shoot: &Shoot) {
        let uid = shoot.uid().unwrap_or_default();
        let mut state = self.lock();
        state.reserved.remove(&uid);
        state.expiries.remove(&uid);
        state.waiting.remove(&uid);
    }
}

/// Whether garden-controller-manager reports that the Shoot waits for a slot. A seed with a grant could have
/// written that reason.
fn reports_wait(shoot: &Shoot) -> bool {
    let status = shoot.status.as_ref();
    let recorded = status.and_then(|status| status.live_migration.as_ref());
    let prepared = recorded.and_then(|recorded| find_condition(&recorded.conditions, PREPARED));
    recorded_preparation(shoot).is_none()
        && prepared
            .is_some_and(|prepared| prepared.status == ConditionStatus::False && prepared.reason == BUSY)
}

#[cfg(test)]
#[path = "grant_slots_tests.rs"]
mod tests;
