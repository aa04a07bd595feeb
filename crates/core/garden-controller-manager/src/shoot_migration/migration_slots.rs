//! Limits the shoots that move to a seed at the same time.
//!
//! A seed that takes over many control planes at once starts all of them at once, and each is down for
//! longer. So a move begins only when the destination has a free slot: the shoot waits while it still runs at
//! the source, never between two seeds. The limit applies to the destination alone: shoots of an evacuated
//! seed move to several destinations in parallel, and an overloaded destination gets few. A shoot without
//! progress holds its slot for a quarter of an hour, and a shoot whose operation is `Failed` holds no slot.
//! So a user who deliberately breaks shoots does not block the shoots of other users.
//!
//! Guarantees: an approved move continues. The shoot that has waited longest comes first.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use api::{
    constants::condition::READY_FOR_MIGRATION,
    gardencore::Shoot,
    meta::{ConditionStatus, LastOperationState as State},
};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use placement::{Journey, journey};

use super::{
    capacity,
    preflight::{BUSY, Verdict, wanted_move},
};

/// How long a slot is reserved for a shoot that may begin. Its source begins at once, or is dead, and then
/// the shoot needs no slot.
const RESERVED_FOR: SignedDuration = SignedDuration::from_secs(60);
/// A shoot that has not arrived after this time waits for a cause outside the destination, and is no load.
const LONGEST: SignedDuration = SignedDuration::from_mins(15);

/// The reason why a shoot gets no slot on the way to a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoSlot {
    /// The maximum number of shoots is on the way.
    Busy(usize),
    /// The seed has as many shoots as `status.allocatable.shoots` allows.
    Full {
        /// The shoots that the seed may have.
        room: usize,
        /// The shoots that the seed has, or that are on the way.
        taken: usize,
    },
}

/// The slots on the way to each seed.
#[derive(Debug)]
pub struct MigrationSlots {
    at_most: usize,
    /// Slots that were reserved recently, and that caches may not show yet, by the uid of the Shoot.
    recent: Mutex<HashMap<String, (String, Timestamp)>>,
}

impl MigrationSlots {
    /// Allows at most `at_most` shoots on their way to a seed.
    #[must_use]
    pub fn new(at_most: usize) -> Self {
        Self {
            at_most,
            recent: Mutex::default(),
        }
    }

    /// Reserves a slot for the shoot on the way to `destination`, unless the limit is reached, or the seed has
    /// as many shoots as `room` allows. `known`: all Shoots.
    ///
    /// # Errors
    /// There is no free slot.
    pub fn reserve(
        &self,
        shoot: &Shoot,
        destination: &str,
        room: Option<usize>,
        known: &[Arc<Shoot>],
        now: Timestamp,
    ) -> Result<(), NoSlot> {
        let own = shoot.uid().unwrap_or_default();
        let mut recent = self.lock_slots();
        recent.retain(|_, (_, since)| now.duration_since(*since) < RESERVED_FOR);
        let shown = known
            .iter()
            .filter(|other| is_on_its_way_to(other, destination, now));
        let mut others: HashSet<String> = shown.filter_map(|other| other.uid()).collect();
        let lately = recent.iter().filter(|(_, (to, _))| to == destination);
        others.extend(lately.map(|(uid, _)| uid.clone()));
        others.remove(&own);
        if others.len() >= self.at_most {
            return Err(NoSlot::Busy(others.len()));
        }
        if let Some(room) = room {
            // Counted under the lock, so that two shoots never share the last room.
            let hosted = capacity::hosted(destination, room, known).filter_map(ResourceExt::uid);
            others.extend(hosted.filter(|uid| *uid != own));
            if others.len() >= room {
                return Err(NoSlot::Full {
                    room,
                    taken: others.len(),
                });
            }
        }
        recent.insert(own, (destination.to_owned(), now));
        Ok(())
    }

    /// Releases the slot: the shoot has arrived, or does not begin after all.
    pub fn release(&self, shoot: &Shoot) {
        self.lock_slots().remove(&shoot.uid().unwrap_or_default());
    }

    /// The shoots that wait for a slot on the way to `destination`: at most as many as the limit, the longest
    /// waiting first.
    #[must_use]
    pub fn next(&self, destination: &str, known: &[Arc<Shoot>]) -> Vec<Arc<Shoot>> {
        let waits = |shoot: &&Arc<Shoot>| wanted_move(shoot).is_some_and(|(_, to)| to == destination);
        let waiting = known.iter().filter(waits);
        let mut waiting: Vec<_> = waiting
            .filter_map(|shoot| Some((waits_since(shoot)?, shoot)))
            .collect();
        waiting.sort_by_key(|(since, shoot)| (*since, shoot.name_any()));
        let first = waiting.into_iter().take(self.at_most);
        first.map(|(_, shoot)| Arc::clone(shoot)).collect()
    }

    fn lock_slots(&self) -> MutexGuard<'_, HashMap<String, (String, Timestamp)>> {
        self.recent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a shoot with this verdict needs a slot, because its move would begin now.
#[must_use]
pub fn needs_slot(shoot: &Shoot, verdict: &Verdict) -> bool {
    let approved = shoot
        .status
        .as_ref()
        .is_some_and(|status| status.migration.is_some());
    verdict.ready && !approved && journey(shoot) == Journey::Settled
}

/// The verdict while there is no free slot.
#[must_use]
pub fn busy(source: &str, destination: &str, others: usize) -> Verdict {
    Verdict {
        ready: false,
        reason: BUSY,
        message: format!(
            "{others} shoots are on their way to seed {destination}, and no more may be at a time: the move begins when one of them \
             has arrived; name another seed, or set spec.seedName back to {source}."
        ),
    }
}

fn is_on_its_way_to(shoot: &Shoot, destination: &str, now: Timestamp) -> bool {
    let Some(status) = &shoot.status else {
        return false;
    };
    let approved = status.migration.as_ref();
    let last = status.last_operation.as_ref();
    let given_up = last.is_some_and(|last| last.state == State::Failed);
    let begun = status.retry_cycle_start_time.as_ref();
    let is_stuck = begun.is_some_and(|begun| now.duration_since(begun.0) > LONGEST);
    approved.is_some_and(|approval| approval.destination == destination)
        && journey(shoot) != Journey::Settled
        && !given_up
        && !is_stuck
}

fn waits_since(shoot: &Shoot) -> Option<Timestamp> {
    let constraint = shoot.status.as_ref()?.constraint(READY_FOR_MIGRATION)?;
    let waits = constraint.status == ConditionStatus::False && constraint.reason == BUSY;
    waits.then_some(constraint.last_transition_time.0)
}

#[cfg(test)]
#[path = "migration_slots_tests.rs"]
mod tests;
