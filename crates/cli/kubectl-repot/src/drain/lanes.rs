//! The lanes of a drain: pure. A tenant can make the moves of own shoots slow, and must not hold up the
//! shoots of further tenants.

use std::collections::BTreeSet;

use kube::ResourceExt;

use super::plan::Work;
use crate::takeover::next_of_rest;

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

    /// The next move, which holds a lane until the end or a delay. `None` if no move may begin now. A lane
    /// that a delay has released is for the shoots of further projects: each move has the bound of the
    /// command, and moves that wait for a slot of the destination would reach this bound.
    pub(super) fn begin_next(&mut self) -> Option<(usize, Work)> {
        if self.held.len() >= self.parallel {
            return None;
        }
        let none = BTreeSet::new();
        let delayed: BTreeSet<String> = self.delayed.iter().cloned().collect();
        let index = next_of_rest(
            &self.waiting,
            &none,
            &delayed,
            &self.held,
            self.parallel,
            |(_, work)| &work.shoot,
        )?;
        let (_, work) = self.waiting.get(index)?;
        let namespace = work.shoot.namespace().unwrap_or_default();
        let is_full = self.held.len() + self.delayed.len() >= self.parallel;
        if is_full && delayed.contains(&namespace) {
            return None;
        }
        self.held.push(namespace);
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

fn remove_first(namespaces: &mut Vec<String>, namespace: &str) {
    if let Some(index) = namespaces.iter().position(|one| one == namespace) {
        namespaces.remove(index);
    }
}

#[cfg(test)]
#[path = "lanes_tests.rs"]
mod tests;
