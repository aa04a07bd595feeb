//! The shares of sources and projects in the slots of a destination, and the turns of projects: pure
//! decisions.
//!
//! The waiting shoots have one total order. The first shoot is the shoot
//!
//! 1. whose move has not used up its time with an approval;
//! 2. then of a project that has less than half of the slots, or no slot;
//! 3. then of a source that has less than half of the slots;
//! 4. then of the project whose last move to the destination ended first.
//!
//! A shoot leaves a free slot to each waiting shoot that comes first and has a valid claim ([`SlotClaims`]).
//! An order has no circle, so at least one of the waiting shoots may take a free slot. The project counts
//! before the source: a project with shoots at two sources would otherwise get all slots.

use std::collections::{HashMap, HashSet};

use api::gardencore::Shoot;
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use crate::slot_claims::SlotClaims;

/// How long the last move of a project counts. Longer than a move holds a slot, so that the projects that
/// hold the slots at present come after a project that only waits.
const REMEMBERED_FOR: SignedDuration = SignedDuration::from_hours(1);

/// The seed and the project that a moving shoot comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MoveOrigin {
    source: String,
    /// The namespace of the project.
    project: String,
}

impl MoveOrigin {
    pub(super) fn new(source: &str, shoot: &Shoot) -> Self {
        Self {
            source: source.to_owned(),
            project: shoot.namespace().unwrap_or_default(),
        }
    }
}

/// The shoots on the way to a destination, the shoots that wait for a slot, and the shoots whose moves have
/// used up their time, each by uid.
#[derive(Debug)]
pub(super) struct SlotDemand<'a> {
    pub(super) destination: &'a str,
    pub(super) at_most: usize,
    pub(super) holders: &'a HashMap<String, MoveOrigin>,
    pub(super) waiting: HashMap<String, MoveOrigin>,
    pub(super) used_up: HashSet<String>,
}

/// The position of a shoot in the order. The lower rank comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SlotRank {
    is_used_up: bool,
    project_has_share: bool,
    source_has_share: bool,
    last_move: Option<Timestamp>,
}

impl SlotDemand<'_> {
    /// Whether the shoot leaves a free slot to a waiting shoot that comes first.
    pub(super) fn leaves_slot(
        &self,
        uid: &str,
        origin: &MoveOrigin,
        turns: &ProjectTurns,
        now: Timestamp,
    ) -> bool {
        let held = HeldSlots::new(self.holders);
        let own = self.rank(uid, origin, &held, turns);
        self.waiting.iter().any(|(other, waits)| {
            turns.claims.is_valid(other, now) && self.rank(other, waits, &held, turns) < own
        })
    }

    /// The uids of the waiting shoots that get the next slots, in the order of the slots: at most as many as
    /// the limit. `longest_first`: the uids of the waiting shoots, in the order of the begin of the wait.
    pub(super) fn next(&self, longest_first: &[String], turns: &ProjectTurns) -> Vec<String> {
        let mut held = HeldSlots::new(self.holders);
        let origins = longest_first.iter();
        let mut waiting: Vec<_> = origins
            .filter_map(|uid| Some((uid, self.waiting.get(uid)?)))
            .collect();
        let (mut next, mut rounds) = (Vec::new(), HashMap::<&str, usize>::new());
        while next.len() < self.at_most {
            let ranks = waiting.iter().enumerate().map(|(position, (uid, origin))| {
                let round = rounds.get(origin.project.as_str()).copied();
                (self.rank(uid, origin, &held, turns), round, position)
            });
            let Some((_, _, first)) = ranks.min() else { break };
            let (uid, origin) = waiting.remove(first);
            held.add(origin);
            *rounds.entry(&origin.project).or_default() += 1;
            next.push(uid.clone());
        }
        next
    }

    /// Equal for all shoots of the same project and source that have not used up their time.
    fn rank(&self, uid: &str, origin: &MoveOrigin, held: &HeldSlots<'_>, turns: &ProjectTurns) -> SlotRank {
        let of_project = held.of_project.get(origin.project.as_str()).copied();
        let of_source = held.of_source.get(origin.source.as_str()).copied();
        SlotRank {
            is_used_up: self.used_up.contains(uid),
            project_has_share: of_project.unwrap_or_default() >= (self.at_most / 2).max(1),
            source_has_share: of_source.unwrap_or_default() >= self.at_most.div_ceil(2),
            last_move: turns.last_move(self.destination, &origin.project),
        }
    }
}

/// The numbers of slots that projects and sources hold: counted once for the ranks of all waiting shoots.
#[derive(Debug, Default)]
struct HeldSlots<'a> {
    of_project: HashMap<&'a str, usize>,
    of_source: HashMap<&'a str, usize>,
}

impl<'a> HeldSlots<'a> {
    fn new(holders: &'a HashMap<String, MoveOrigin>) -> Self {
        let mut held = Self::default();
        for origin in holders.values() {
            held.add(origin);
        }
        held
    }

    fn add(&mut self, origin: &'a MoveOrigin) {
        *self.of_project.entry(&origin.project).or_default() += 1;
        *self.of_source.entry(&origin.source).or_default() += 1;
    }
}

/// The order of the projects that wait for slots.
#[derive(Debug, Default)]
pub(super) struct ProjectTurns {
    pub(super) claims: SlotClaims,
    /// When a shoot of the project was last seen on the way, by destination and project.
    moved: HashMap<String, HashMap<String, Timestamp>>,
}

impl ProjectTurns {
    /// Records the projects that hold slots. `waiting`: the uids of the shoots that wait for a slot of any
    /// destination.
    pub(super) fn observe(&mut self, demand: &SlotDemand<'_>, waiting: &HashSet<String>, now: Timestamp) {
        self.claims.observe(waiting, now);
        self.moved.retain(|_, moved| {
            moved.retain(|_, last| now.duration_since(*last) < REMEMBERED_FOR);
            !moved.is_empty()
        });
        let moved = self.moved.entry(demand.destination.to_owned()).or_default();
        let holders = demand.holders.values();
        moved.extend(holders.map(|holder| (holder.project.clone(), now)));
    }

    /// `None`: the project has moved no shoot to the destination for long, and comes first.
    fn last_move(&self, destination: &str, project: &str) -> Option<Timestamp> {
        self.moved.get(destination)?.get(project).copied()
    }
}
