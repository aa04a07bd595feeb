//! The lanes of a drain: pure. A tenant can make the moves of own shoots slow, and must not hold up the
//! shoots of further tenants.

use std::collections::BTreeSet;

use api::gardencore::Shoot;
use kube::ResourceExt;

use super::plan::Work;
use crate::takeover::{ProjectStates, next_of_rest};

/// The most moves of this command under way, for each lane. Delayed moves hold the slots of the destination,
/// so each further request would only lengthen the queue.
const MOVES_PER_LANE: usize = 2;

/// The shoots that wait for a lane, and the projects of the moves under way.
#[derive(Debug)]
pub(super) struct Lanes {
    parallel: usize,
    /// The moves that have not begun, each with the position in the plan.
    waiting: Vec<(usize, Work)>,
    /// Namespaces of the shoots that hold a lane.
    held: Vec<String>,
    /// Namespaces of the delayed moves of this command. A delayed move runs on and holds no lane.
    delayed: Vec<String>,
    /// Namespaces of the delayed moves of this command that hold no slot of the destination any more.
    overdue: Vec<String>,
    /// Namespaces of shoots that have arrived.
    proven: BTreeSet<String>,
}

impl Lanes {
    pub(super) fn new(work: Vec<Work>, parallel: usize) -> Self {
        Self {
            parallel: parallel.max(1),
            waiting: work.into_iter().enumerate().collect(),
            held: Vec::new(),
            delayed: Vec::new(),
            overdue: Vec::new(),
            proven: BTreeSet::new(),
        }
    }

    /// The next move. The move holds a lane until the end or a delay. `None` if no move may begin now. A lane
    /// that a delay has released is for the shoots of further projects, up to [`MOVES_PER_LANE`]. All moves
    /// of an earlier command come first and at once: these moves are under way in any case, and would
    /// otherwise show a delay in turn.
    pub(super) fn begin_next(&mut self) -> Option<(usize, Work)> {
        if let Some(index) = self.waiting.iter().position(|(_, work)| work.is_under_way) {
            return Some(self.hold(index));
        }
        let under_way = self.held.len() + self.delayed.len();
        if self.held.len() >= self.parallel || under_way >= self.parallel * MOVES_PER_LANE {
            return None;
        }
        let none = BTreeSet::new();
        let slow: BTreeSet<String> = self.delayed.iter().chain(&self.overdue).cloned().collect();
        let projects = ProjectStates {
            failing: &none,
            slow: &slow,
            proven: &self.proven,
            held: &self.held,
        };
        let is_full = self.held.len() + self.delayed.len() + self.overdue.len() >= self.parallel;
        let may_begin = |shoot: &Shoot| !is_full || !slow.contains(&namespace_of(shoot));
        let waiting = self.waiting.iter().enumerate();
        let candidates = waiting.map(|(index, (_, work))| (index, &work.shoot));
        let candidates: Vec<(usize, &Shoot)> = candidates.filter(|(_, shoot)| may_begin(shoot)).collect();
        let next = next_of_rest(&candidates, projects, self.parallel, |(_, shoot)| *shoot)?;
        let (index, _) = *candidates.get(next)?;
        Some(self.hold(index))
    }

    fn hold(&mut self, index: usize) -> (usize, Work) {
        let next = self.waiting.remove(index);
        self.held.push(namespace_of(&next.1.shoot));
        next
    }

    /// The number of shoots that wait while each move under way is delayed.
    pub(super) fn count_held_up(&self) -> usize {
        if self.held.is_empty() {
            self.waiting.len()
        } else {
            0
        }
    }

    /// A move that held a lane has ended.
    pub(super) fn end(&mut self, namespace: &str) {
        remove_first(&mut self.held, namespace);
    }

    /// A shoot of the project is complete in the destination.
    pub(super) fn note_arrival(&mut self, namespace: &str) {
        self.proven.insert(namespace.to_owned());
    }

    /// The next shoots do not wait for a move. A move of an earlier command delays no shoot of the project.
    pub(super) fn delay(&mut self, namespace: &str, is_of_this_command: bool) {
        remove_first(&mut self.held, namespace);
        if is_of_this_command {
            self.delayed.push(namespace.to_owned());
        }
    }

    /// A delayed move of this command holds no slot of the destination any more.
    pub(super) fn free_slot(&mut self, namespace: &str) {
        remove_first(&mut self.delayed, namespace);
        self.overdue.push(namespace.to_owned());
    }

    /// A delayed move of this command has ended. `had_slot`: before a call of [`Self::free_slot`].
    pub(super) fn end_delayed(&mut self, namespace: &str, had_slot: bool) {
        let moves = if had_slot {
            &mut self.delayed
        } else {
            &mut self.overdue
        };
        remove_first(moves, namespace);
    }
}

fn namespace_of(shoot: &Shoot) -> String {
    shoot.namespace().unwrap_or_default()
}

fn remove_first(namespaces: &mut Vec<String>, namespace: &str) {
    if let Some(index) = namespaces.iter().position(|one| one == namespace) {
        namespaces.remove(index);
    }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
