//! Limits the shoots that move to a seed at the same time.
//!
//! A seed that takes over many control planes at once starts all of them at once, and each is down for
//! longer. So a move begins only when the destination has a free slot: the shoot waits while it still runs at
//! the source, never between two seeds. The limit applies to the destination alone: shoots of an evacuated
//! seed move to several destinations in parallel, and an overloaded destination gets few. A shoot without
//! progress holds its slot for a quarter of an hour, and a shoot whose operation is `Failed` holds no slot.
//! So a user who deliberately breaks shoots does not block the shoots of other users. A source writes both
//! values, so this process measures with its own clock how long a shoot does not leave the source. While
//! shoots of a different source wait, one source gets half of the slots. An approved shoot holds a slot also
//! before the source begins, and loses the approval if the source does not begin. Otherwise a source could
//! collect approvals, and hand over all these shoots at once.
//!
//! Guarantees: an approved move continues. The shoot that has waited longest comes first. A shoot whose
//! approval cannot be written holds no slot.

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

/// How long a slot is reserved for a shoot whose approval the cache may not show.
const RESERVED_FOR: SignedDuration = SignedDuration::from_secs(60);
/// A shoot that has not arrived after this time waits for a cause outside the destination, and is no load.
const LONGEST: SignedDuration = SignedDuration::from_mins(15);
/// An approval that the source has not begun after this time is withdrawn. Shorter than [`LONGEST`]: the slot
/// is idle meanwhile.
const BEGUN_WITHIN: SignedDuration = SignedDuration::from_mins(3);
/// How long a shoot whose approval was withdrawn waits, so that waiting shoots get the slot first.
const WITHDRAWN_FOR: SignedDuration = SignedDuration::from_secs(30);

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
    recent: Mutex<HashMap<String, Reservation>>,
    /// When this process first saw an approved move that the source has not ended, by the uid of the Shoot
    /// and the approved generation.
    leaving: Mutex<HashMap<(String, i64), Timestamp>>,
    /// When this process withdrew an approval, by the uid of the Shoot.
    withdrawn: Mutex<HashMap<String, Timestamp>>,
}

#[derive(Debug)]
struct Reservation {
    source: String,
    destination: String,
    since: Timestamp,
}

impl MigrationSlots {
    /// Allows at most `at_most` shoots on their way to a seed.
    #[must_use]
    pub fn new(at_most: usize) -> Self {
        Self {
            at_most,
            recent: Mutex::default(),
            leaving: Mutex::default(),
            withdrawn: Mutex::default(),
        }
    }

    /// Reserves a slot for the shoot on the way to `destination`, unless the limit is reached, or the seed
    /// has as many shoots as `room` allows. `known`: all Shoots.
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
        recent.retain(|_, slot| now.duration_since(slot.since) < RESERVED_FOR);
        let stalled = self.stalled(known, now);
        let shown = known
            .iter()
            .filter(|other| is_on_its_way_to(other, destination, now));
        let mut sources: HashMap<String, String> = shown
            .filter_map(|other| Some((other.uid()?, approved_source(other)?.to_owned())))
            .filter(|(uid, _)| !stalled.contains(uid))
            .collect();
        let lately = recent.iter().filter(|(_, slot)| slot.destination == destination);
        sources.extend(lately.map(|(uid, slot)| (uid.clone(), slot.source.clone())));
        sources.remove(&own);
        let source = wanted_move(shoot).map_or("", |(from, _)| from);
        let of_source = sources.values().filter(|from| *from == source).count();
        let has_its_share = of_source >= self.at_most.div_ceil(2) && is_contended(destination, source, known);
        if sources.len() >= self.at_most || has_its_share {
            return Err(NoSlot::Busy(sources.len()));
        }
        let mut others: HashSet<String> = sources.into_keys().collect();
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
        let slot = Reservation {
            source: source.to_owned(),
            destination: destination.to_owned(),
            since: now,
        };
        recent.insert(own, slot);
        Ok(())
    }

    /// Releases the slot: the shoot has arrived, or does not begin after all.
    pub fn release(&self, shoot: &Shoot) {
        self.lock_slots().remove(&shoot.uid().unwrap_or_default());
        if let Some(key) = departure(shoot) {
            lock(&self.leaving).remove(&key);
        }
    }

    /// Releases the slot of a shoot whose approval could not be written. An approved shoot keeps the slot.
    pub fn cancel(&self, shoot: &Shoot) {
        if approved_source(shoot).is_none() {
            self.lock_slots().remove(&shoot.uid().unwrap_or_default());
        }
    }

    /// Whether the shoot has no approval, because the source has not begun an approved move within
    /// [`BEGUN_WITHIN`]. Holds for a while after the withdrawal.
    #[must_use]
    pub fn is_withdrawn(&self, shoot: &Shoot, now: Timestamp) -> bool {
        let mut withdrawn = lock(&self.withdrawn);
        withdrawn.retain(|_, since| now.duration_since(*since) < WITHDRAWN_FOR);
        let Some(uid) = shoot.uid() else { return false };
        if withdrawn.contains_key(&uid) {
            return true;
        }
        let is_overdue = self.is_overdue(shoot, now);
        if is_overdue {
            withdrawn.insert(uid, now);
        }
        is_overdue
    }

    fn is_overdue(&self, shoot: &Shoot, now: Timestamp) -> bool {
        let Some(key) = departure(shoot).filter(|_| awaits_source(shoot)) else {
            return false;
        };
        let since = *lock(&self.leaving).entry(key).or_insert(now);
        now.duration_since(since) > BEGUN_WITHIN
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

    /// Uids of the shoots that have not left their source within [`LONGEST`]. The gardenlet of the source
    /// writes the times of the status.
    fn stalled(&self, known: &[Arc<Shoot>], now: Timestamp) -> HashSet<String> {
        let present: HashSet<_> = known.iter().filter_map(|shoot| departure(shoot)).collect();
        let mut leaving = lock(&self.leaving);
        leaving.retain(|key, _| present.contains(key));
        for key in present {
            leaving.entry(key).or_insert(now);
        }
        let late = leaving
            .iter()
            .filter(|(_, since)| now.duration_since(**since) > LONGEST);
        late.map(|((uid, _), _)| uid.clone()).collect()
    }

    fn lock_slots(&self) -> MutexGuard<'_, HashMap<String, Reservation>> {
        lock(&self.recent)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The verdict on a move whose approval was withdrawn, because the source has not begun.
#[must_use]
pub fn not_begun(source: &str, destination: &str) -> Verdict {
    Verdict {
        ready: false,
        reason: BUSY,
        message: format!(
            "seed {source} has not begun the approved move within {} minutes, so that other shoots get the slot on the way to seed \
             {destination}: the move is approved again when a slot is free; check the gardenlet of seed {source}, or set spec.seedName \
             back to {source}.",
            BEGUN_WITHIN.as_mins()
        ),
    }
}

/// Whether a move is approved, and the source has not begun.
#[must_use]
pub fn awaits_source(shoot: &Shoot) -> bool {
    departure(shoot).is_some() && journey(shoot) == Journey::Settled
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
    // The source also writes the state of an operation before the move.
    let is_under_way = journey(shoot) != Journey::Settled && !given_up && !is_stuck;
    approved.is_some_and(|approval| approval.destination == destination)
        && (awaits_source(shoot) || is_under_way)
}

fn approved_source(shoot: &Shoot) -> Option<&str> {
    Some(shoot.status.as_ref()?.migration.as_ref()?.source.as_str())
}

/// Uid and approved generation of a shoot that its source has not handed over. The last operation does not
/// matter: the source could begin again and again.
fn departure(shoot: &Shoot) -> Option<(String, i64)> {
    let status = shoot.status.as_ref()?;
    let approval = status.migration.as_ref()?;
    let is_at_source = status.seed_name.as_ref() == Some(&approval.source);
    is_at_source.then_some((shoot.uid()?, approval.generation))
}

/// Whether a shoot of a different source waits for a slot on the way to `destination`.
fn is_contended(destination: &str, source: &str, known: &[Arc<Shoot>]) -> bool {
    known.iter().any(|other| {
        let is_elsewhere = wanted_move(other).is_some_and(|(from, to)| to == destination && from != source);
        is_elsewhere && waits_since(other).is_some()
    })
}

fn waits_since(shoot: &Shoot) -> Option<Timestamp> {
    let constraint = shoot.status.as_ref()?.constraint(READY_FOR_MIGRATION)?;
    let waits = constraint.status == ConditionStatus::False && constraint.reason == BUSY;
    waits.then_some(constraint.last_transition_time.0)
}

#[cfg(test)]
#[path = "migration_slots_tests.rs"]
mod tests;
