//! Limits the shoots that move to a seed at the same time.
//!
//! A seed that takes over many control planes at once starts all of them at once, and each is down for
//! longer. So a move begins only when the destination has a free slot: the shoot waits while it still runs at
//! the source, never between two seeds. The limit applies to the destination alone: shoots of an evacuated
//! seed move to several destinations in parallel, and an overloaded destination gets few. A shoot that does
//! not arrive holds its slot for a quarter of an hour, and a shoot whose operation is `Failed` holds no slot.
//! A source writes both values, so this process measures with its own clock how long a shoot does not leave
//! the source. The time continues with the next approval of the same generation: a source could end and begin
//! a move to get a new approval. After that time, the move comes last. A shoot without progress does not lose
//! the slot earlier: the moves to an overloaded destination make no progress either, and the free slots would
//! add to the load.
//!
//! Sources and projects share the slots, and projects take turns (`slot_shares`). So a user who deliberately
//! breaks shoots does not block the shoots of other projects. An approved shoot holds a slot also before the
//! source begins, and loses the approval if the source does not begin. Otherwise a source could collect
//! approvals, and hand over all these shoots at once.
//!
//! Guarantees: an approved move continues. Of a project, the shoot that has waited longest comes first. A
//! shoot whose approval cannot be written holds no slot.

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
    slot_shares::{MoveOrigin, ProjectTurns, SlotDemand},
};

/// How long a slot is reserved for a shoot whose approval the cache may not show.
const RESERVED_FOR: SignedDuration = SignedDuration::from_secs(60);
/// A shoot that has not arrived after this time waits for a cause outside the destination, and is no load.
/// The time of all approvals of a generation counts, as long as the shoot stays on the source.
/// Not shorter than the longest wait of a gardenlet for a single step, the copy of backups.
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
    /// This number of shoots is on the way, and the next slot is for a different source or project.
    LeftToOthers(usize),
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
    /// The time with an approval of each move that the source has not ended, by the uid of the Shoot and the
    /// approved generation.
    leaving: Mutex<HashMap<(String, i64), ApprovedTime>>,
    /// When this process withdrew an approval, by the uid of the Shoot.
    withdrawn: Mutex<HashMap<String, Timestamp>>,
    turns: Mutex<ProjectTurns>,
}

#[derive(Debug)]
struct Reservation {
    origin: MoveOrigin,
    destination: String,
    since: Timestamp,
}

/// How long a move of one generation has had an approval, by the clock of this process.
#[derive(Debug, Default)]
struct ApprovedTime {
    /// The time of withdrawn approvals.
    before: SignedDuration,
    /// When this process first saw the present approval.
    since: Option<Timestamp>,
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
            turns: Mutex::default(),
        }
    }

    /// Reserves a slot for the shoot on the way to `destination`, unless the limit is reached, a waiting
    /// shoot comes first, or the seed has as many shoots as `room` allows. `known`: all Shoots.
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
        let mut holders = self.holders(&mut recent, destination, known, now);
        holders.remove(&own);
        let origin = MoveOrigin::new(wanted_move(shoot).map_or("", |(from, _)| from), shoot);
        let demand = self.demand(destination, &holders, known);
        let mut turns = lock(&self.turns);
        turns.observe(&demand, &all_waiting(known), now);
        let is_busy = holders.len() >= self.at_most;
        if is_busy || demand.leaves_slot(&own, &origin, &turns, now) {
            turns.claims.refuse(own, now);
            return Err(if is_busy {
                NoSlot::Busy(holders.len())
            } else {
                NoSlot::LeftToOthers(holders.len())
            });
        }
        let mut others: HashSet<String> = holders.into_keys().collect();
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
            origin,
            destination: destination.to_owned(),
            since: now,
        };
        turns.claims.grant(own.clone());
        recent.insert(own, slot);
        Ok(())
    }

    /// The shoots on the way to `destination` by their status or by a recent reservation, by uid.
    fn holders(
        &self,
        recent: &mut HashMap<String, Reservation>,
        destination: &str,
        known: &[Arc<Shoot>],
        now: Timestamp,
    ) -> HashMap<String, MoveOrigin> {
        let stalled = self.stalled(known, now);
        let shown = known
            .iter()
            .filter(|shoot| is_on_its_way_to(shoot, destination, now));
        let origins =
            shown.filter_map(|shoot| Some((shoot.uid()?, MoveOrigin::new(approved_source(shoot)?, shoot))));
        let mut holders: HashMap<_, _> = origins.filter(|(uid, _)| !stalled.contains(uid)).collect();
        recent.retain(|_, slot| now.duration_since(slot.since) < RESERVED_FOR);
        let lately = recent.iter().filter(|(_, slot)| slot.destination == destination);
        holders.extend(lately.map(|(uid, slot)| (uid.clone(), slot.origin.clone())));
        holders
    }

    /// The demand for the slots on the way to `destination`. `holders`: the shoots that hold these slots.
    /// `known`: all Shoots.
    fn demand<'a>(
        &self,
        destination: &'a str,
        holders: &'a HashMap<String, MoveOrigin>,
        known: &[Arc<Shoot>],
    ) -> SlotDemand<'a> {
        SlotDemand {
            destination,
            at_most: self.at_most,
            holders,
            waiting: waiting_for(destination, known),
            used_up: self.used_up(),
        }
    }

    /// Releases the slot: the shoot has arrived, or the approval has ended.
    pub fn release(&self, shoot: &Shoot, now: Timestamp) {
        self.lock_slots().remove(&shoot.uid().unwrap_or_default());
        let Some(key) = departure(shoot) else { return };
        let mut leaving = lock(&self.leaving);
        if let Some(time) = leaving.get_mut(&key)
            && let Some(since) = time.since.take()
        {
            time.before += now.duration_since(since);
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
        let since = *lock(&self.leaving)
            .entry(key)
            .or_default()
            .since
            .get_or_insert(now);
        now.duration_since(since) > BEGUN_WITHIN
    }

    /// The waiting shoots that get the next slots on the way to `destination`: at most as many as the limit,
    /// and none without a free slot. `left`: the shoot that has released a slot, and that `known` may still
    /// show on the way.
    #[must_use]
    pub fn next(
        &self,
        left: &Shoot,
        destination: &str,
        known: &[Arc<Shoot>],
        now: Timestamp,
    ) -> Vec<Arc<Shoot>> {
        let waiting = known.iter();
        let mut waiting: Vec<_> = waiting
            .filter_map(|shoot| Some((waits_since(shoot)?, shoot.name_any(), shoot.uid()?)))
            .collect();
        waiting.sort();
        let longest_first: Vec<_> = waiting.into_iter().map(|(_, _, uid)| uid).collect();
        let mut holders = self.holders(&mut self.lock_slots(), destination, known, now);
        holders.remove(&left.uid().unwrap_or_default());
        if holders.len() >= self.at_most {
            return Vec::new();
        }
        let demand = self.demand(destination, &holders, known);
        let next = demand.next(&longest_first, &lock(&self.turns));
        let shoots = next.iter().filter_map(|uid| {
            known
                .iter()
                .find(|shoot| shoot.metadata.uid.as_ref() == Some(uid))
        });
        shoots.cloned().collect()
    }

    /// Uids of the shoots that have not left their source within [`LONGEST`]. The gardenlet of the source
    /// writes the times of the status. A shoot that the source has not begun holds the slot for the present
    /// approval, which ends soon: otherwise a source could collect approvals without slots.
    fn stalled(&self, known: &[Arc<Shoot>], now: Timestamp) -> HashSet<String> {
        let approved = known
            .iter()
            .filter_map(|shoot| Some((departure(shoot)?, awaits_source(shoot))));
        let approved: HashMap<_, _> = approved.collect();
        let wanted: HashSet<_> = known
            .iter()
            .filter_map(|shoot| wanted_generation(shoot))
            .collect();
        let mut leaving = lock(&self.leaving);
        leaving.retain(|key, time| {
            let is_approved = approved.contains_key(key);
            if !is_approved {
                time.since = None;
            }
            is_approved || wanted.contains(key)
        });
        let mut stalled = HashSet::new();
        for (key, awaits) in approved {
            let uid = key.0.clone();
            let time = leaving.entry(key).or_default();
            let present = now.duration_since(*time.since.get_or_insert(now));
            if present > LONGEST || (!awaits && time.before + present > LONGEST) {
                stalled.insert(uid);
            }
        }
        stalled
    }

    /// Uids of the shoots whose withdrawn approvals of the present generation have lasted longer than
    /// [`LONGEST`].
    fn used_up(&self) -> HashSet<String> {
        let leaving = lock(&self.leaving);
        let used_up = leaving.iter().filter(|(_, time)| time.before > LONGEST);
        used_up.map(|((uid, _), _)| uid.clone()).collect()
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

/// The verdict while the next slot is for a different source or project.
#[must_use]
pub fn left_to_others(source: &str, destination: &str, others: usize) -> Verdict {
    Verdict {
        ready: false,
        reason: BUSY,
        message: format!(
            "{others} shoots are on their way to seed {destination}, and the next slot is for a waiting shoot of a different project or \
             source: the move begins when a slot is free for this shoot; name another seed, or set spec.seedName back to {source}."
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

/// Whether the move to `destination` is approved, goes on, and has not lasted too long.
pub(super) fn is_on_its_way_to(shoot: &Shoot, destination: &str, now: Timestamp) -> bool {
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

/// Uid and generation of a shoot that wants to move: the key of [`departure`] for the next approval.
fn wanted_generation(shoot: &Shoot) -> Option<(String, i64)> {
    wanted_move(shoot)?;
    Some((shoot.uid()?, shoot.metadata.generation.unwrap_or_default()))
}

/// The shoots that wait for a slot on the way to `destination`, by uid.
fn waiting_for(destination: &str, known: &[Arc<Shoot>]) -> HashMap<String, MoveOrigin> {
    let waiting = known.iter().filter(|shoot| waits_since(shoot).is_some());
    let to_destination = waiting.filter_map(|shoot| {
        let (source, _) = wanted_move(shoot).filter(|(_, to)| *to == destination)?;
        Some((shoot.uid()?, MoveOrigin::new(source, shoot)))
    });
    to_destination.collect()
}

/// The uids of the shoots that wait for a slot of any destination.
fn all_waiting(known: &[Arc<Shoot>]) -> HashSet<String> {
    let waiting = known.iter().filter(|shoot| waits_since(shoot).is_some());
    waiting.filter_map(|shoot| shoot.uid()).collect()
}

/// Since when the shoot waits for a slot.
pub(super) fn waits_since(shoot: &Shoot) -> Option<Timestamp> {
    let constraint = shoot.status.as_ref()?.constraint(READY_FOR_MIGRATION)?;
    let waits = constraint.status == ConditionStatus::False && constraint.reason == BUSY;
    waits.then_some(constraint.last_transition_time.0)
}

#[cfg(test)]
#[path = "migration_slots_tests.rs"]
mod tests;
