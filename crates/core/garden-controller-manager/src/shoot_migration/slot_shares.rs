//! The shares of sources and projects in the slots of a destination, and the turns of projects: pure
//! decisions.
//!
//! 1. While a shoot of a different source waits, a source gets half of the slots.
//! 2. While a shoot of a different project waits, a project gets half of the slots, and at least one slot.
//! 3. A free slot goes to the project whose last move to the destination ended first.
//!
//! Rules 2 and 3 count a waiting shoot only if neither its source nor its project has its share, and if its
//! claim is valid ([`SlotClaims`]). So at least one of the waiting shoots may take a free slot.

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

/// The shoots on the way to a destination, and the shoots that wait for a slot, each by uid.
#[derive(Clone, Copy, Debug)]
pub(super) struct SlotDemand<'a> {
    pub(super) destination: &'a str,
    pub(super) at_most: usize,
    pub(super) holders: &'a HashMap<String, MoveOrigin>,
    pub(super) waiting: &'a HashMap<String, MoveOrigin>,
}

impl SlotDemand<'_> {
    /// Whether a shoot of this origin leaves a free slot to a waiting shoot of a different source or project.
    pub(super) fn leaves_slot(&self, asks: &MoveOrigin, turns: &ProjectTurns, now: Timestamp) -> bool {
        if self.has_source_share(&asks.source) {
            return true;
        }
        let has_share = self.has_project_share(&asks.project);
        let last = turns.last_move(self.destination, &asks.project);
        self.waiting.iter().any(|(uid, waits)| {
            waits.project != asks.project
                && turns.claims.is_valid(uid, now)
                && !self.has_project_share(&waits.project)
                && !self.has_source_share(&waits.source)
                && (has_share || turns.last_move(self.destination, &waits.project) < last)
        })
    }

    /// Whether the source has half of the slots while a shoot of a different source waits.
    fn has_source_share(&self, source: &str) -> bool {
        let held = self.holders.values().filter(|holder| holder.source == source);
        held.count() >= self.at_most.div_ceil(2) && self.waiting.values().any(|waits| waits.source != source)
    }

    fn has_project_share(&self, project: &str) -> bool {
        let held = self.holders.values().filter(|holder| holder.project == project);
        held.count() >= (self.at_most / 2).max(1)
    }
}

/// The order of the projects that wait for slots.
#[derive(Debug, Default)]
pub(super) struct ProjectTurns {
    pub(super) claims: SlotClaims,
    /// When a shoot of the project was last seen on the way, by destination and project.
    moved: HashMap<(String, String), Timestamp>,
}

impl ProjectTurns {
    /// Records the projects that hold slots. `waiting`: the uids of the shoots that wait for a slot of any
    /// destination.
    pub(super) fn observe(&mut self, demand: SlotDemand<'_>, waiting: &HashSet<String>, now: Timestamp) {
        self.claims.observe(waiting, now);
        self.moved
            .retain(|_, last| now.duration_since(*last) < REMEMBERED_FOR);
        for holder in demand.holders.values() {
            let key = (demand.destination.to_owned(), holder.project.clone());
            self.moved.insert(key, now);
        }
    }

    /// `None`: the project has moved no shoot to the destination for long, and comes first.
    pub(super) fn last_move(&self, destination: &str, project: &str) -> Option<Timestamp> {
        let key = (destination.to_owned(), project.to_owned());
        self.moved.get(&key).copied()
    }
}
