//! The lanes of a drain: pure. A tenant can make the moves of own shoots slow, and must not hold up the
//! shoots of further tenants.

use std::collections::BTreeSet;

use api::gardencore::Shoot;
use kube::ResourceExt;

use super::plan::Work;
use crate::takeover::next_of_rest;

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
}

impl Lanes {
    pub(super) fn new(work: Vec<Work>, parallel: usize) -> Self {
        Self {
            parallel: parallel.max(1),
            waiting: work.into_iter().enumerate().collect(),
            held: Vec::new(),
            delayed: Vec::new(),
        }
    }

    /// The next move. The move holds a lane until the end or a delay. `None` if no move may begin now. A lane
    /// that a delay has released is for the shoots of further projects, up to [`MOVES_PER_LANE`].
    pub(super) fn begin_next(&mut self) -> Option<(usize, Work)> {
        let under_way = self.held.len() + self.delayed.len();
        if self.held.len() >= self.parallel || under_way >= self.parallel * MOVES_PER_LANE {
            return None;
        }
        let none = BTreeSet::new();
        let delayed: BTreeSet<String> = self.delayed.iter().cloned().collect();
        let is_full = under_way >= self.parallel;
        let may_begin = |shoot: &Shoot| !is_full || !delayed.contains(&namespace_of(shoot));
        let waiting = self.waiting.iter().enumerate();
        let candidates = waiting.map(|(index, (_, work))| (index, &work.shoot));
        let candidates: Vec<(usize, &Shoot)> = candidates.filter(|(_, shoot)| may_begin(shoot)).collect();
        let next = next_of_rest(
            &candidates,
            &none,
            &delayed,
            &self.held,
            self.parallel,
            |(_, shoot)| *shoot,
        )?;
        let (index, shoot) = *candidates.get(next)?;
        self.held.push(namespace_of(shoot));
        Some(self.waiting.remove(index))
    }

    /// A move that held a lane has ended.
    pub(super) fn end(&mut self, namespace: &str) {
        remove_first(&mut self.held, namespace);
    }

    /// The next shoots do not wait for a move. A move of an earlier command delays no shoot of the project.
    pub(super) fn delay(&mut self, namespace: &str, is_of_this_command: bool) {
        remove_first(&mut self.held, namespace);
        if is_of_this_command {
            self.delayed.push(namespace.to_owned());
        }
    }

    /// A delayed move of this command has ended.
    pub(super) fn end_delayed(&mut self, namespace: &str) {
        remove_first(&mut self.delayed, namespace);
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
