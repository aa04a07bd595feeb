//! The failed moves of a drain, and the moves that are given up: pure.

use std::collections::BTreeMap;

/// The number of projects with a failed move before all moves are given up. A tenant can make the own move
/// fail, and must not stop the drain.
const FAILED_PROJECTS: usize = 2;

/// The reason of a project with a failed move. The next shoots would probably meet the same fault.
const PROJECT_FAILS: &str = "a move of the project before has failed";
/// The reason of all projects.
const ALL_FAIL: &str =
    "moves of two projects have failed, and no move that was requested afterwards has arrived";

/// The failed moves of this command. A move of an earlier command does not count: the failure shows no fault
/// of a request of this command.
#[derive(Debug, Default)]
pub(super) struct FailedMoves {
    /// The number of the last request.
    requested: usize,
    /// The number of the latest request with an arrival. The arrival shows that not all shoots share the
    /// faults of earlier requests.
    arrived: usize,
    /// The number of the latest failed request of each namespace.
    failed: BTreeMap<String, usize>,
}

impl FailedMoves {
    /// Counts a request of this command. The result is the number of the request.
    pub(super) fn note_request(&mut self) -> usize {
        self.requested += 1;
        self.requested
    }

    /// The shoot of the request is complete in the destination.
    pub(super) fn note_arrival(&mut self, request: usize) {
        self.arrived = self.arrived.max(request);
    }

    /// The move of the request has failed.
    pub(super) fn note_failure(&mut self, namespace: &str, request: usize) {
        let latest = self.failed.entry(namespace.to_owned()).or_default();
        *latest = request.max(*latest);
    }

    /// The reason why no move of the project is requested, if there is a reason.
    pub(super) fn give_up_reason(&self, namespace: &str) -> Option<&'static str> {
        let may_be_shared = self.failed.values().filter(|&&request| request > self.arrived);
        if may_be_shared.count() >= FAILED_PROJECTS {
            return Some(ALL_FAIL);
        }
        self.failed.contains_key(namespace).then_some(PROJECT_FAILS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `moves`: the namespace of each request in order, and whether the move has arrived or failed.
    fn after(moves: &[(&str, Option<bool>)]) -> FailedMoves {
        let mut failed = FailedMoves::default();
        for (namespace, has_arrived) in moves {
            let request = failed.note_request();
            match has_arrived {
                Some(true) => failed.note_arrival(request),
                Some(false) => failed.note_failure(namespace, request),
                None => {}
            }
        }
        failed
    }

    #[test]
    fn a_failed_move_ends_the_moves_of_the_project_and_two_projects_end_all() {
        assert_eq!(after(&[]).give_up_reason("x"), None);
        let one = after(&[("x", Some(false)), ("x", Some(false)), ("y", None)]);
        assert_eq!(one.give_up_reason("x"), Some(PROJECT_FAILS));
        assert_eq!(one.give_up_reason("y"), None);
        let two = after(&[("x", Some(false)), ("y", Some(false))]);
        assert_eq!(two.give_up_reason("z"), Some(ALL_FAIL));
    }

    /// Security: otherwise a member with two projects ends each drain.
    #[test]
    fn an_arrival_of_a_later_request_shows_that_a_fault_is_not_shared() {
        let evil = [("x", Some(false)), ("y", Some(false)), ("z", Some(true))];
        let failed = after(&evil);
        assert_eq!(failed.give_up_reason("z"), None);
        assert_eq!(failed.give_up_reason("x"), Some(PROJECT_FAILS));
        // The destination has a fault since the arrival.
        let broken = after(&[("z", Some(true)), ("x", Some(false)), ("y", Some(false))]);
        assert_eq!(broken.give_up_reason("z"), Some(ALL_FAIL));
        // A single project has failed since the arrival.
        let single = after(&[("x", Some(false)), ("z", Some(true)), ("y", Some(false))]);
        assert_eq!(single.give_up_reason("z"), None);
    }
}
