//! All that can happen to two managers and two locks, step by step, with the real observation, decision and timing.
//!
//! The managers ask for the main lock, and for the migration lock while they hold the main lock. Anything may go wrong, a
//! few times in one run: a manager is paused and goes on, dies and starts anew, gives its locks back; a request is slow, is
//! lost, is carried out without an answer, or is carried out long after its sender gave up (or died). One manager's clock
//! runs faster. Every reachable state is looked at:
//! - no lock is held validly by two managers at any time, by their own clocks;
//! - while nothing goes wrong and a manager lives that may take the lock, it is without a holder for no longer than the
//!   lease duration and a retry period.
//!
//! A model that cannot fail proves nothing: the second half of this file breaks one rule at a time and sees it fail.

#![allow(clippy::expect_used, clippy::unchecked_time_subtraction)]

mod explore;
mod world;

use std::time::{Duration, Instant};

use crate::decision::{Decision, decide};
use crate::observation::{Observation, Seen};
use crate::{Record, Timing};
use explore::explore;
use world::{READER_WALL, Rules};

/// Few enough that a test takes seconds, enough for a fault of each kind at a time.
const FAULTS_ONE_LOCK: u8 = 4;
const FAULTS_TWO_LOCKS: u8 = 2;

fn real() -> Rules {
    Rules {
        locks: 1,
        faults: FAULTS_ONE_LOCK,
        faster: 1,
        // Four seconds pass in three: less than lease duration to renew deadline.
        gains: 1,
        gains_every: 3,
        compare_and_swap: true,
        decide,
        valid_until: Timing::valid_until,
    }
}

#[test]
fn one_lock_is_never_held_twice_nor_left_alone() {
    // Either manager may be the holder, so the holder's clock is the slow one in some runs and the fast one in others.
    let found = explore(&real());
    assert_eq!(found.broken, None);
    assert!(
        found.states > 10_000,
        "the model does not move: {} states",
        found.states
    );
    println!("{} states", found.states);
    assert!(found.changes_of_holder, "the lock never changed hands");
}

#[test]
fn two_locks_are_never_held_twice_nor_left_alone() {
    let found = explore(&Rules {
        locks: 2,
        faults: FAULTS_TWO_LOCKS,
        ..real()
    });
    assert_eq!(found.broken, None);
    assert!(
        found.states > 10_000,
        "the model does not move: {} states",
        found.states
    );
    println!("{} states", found.states);
    assert!(found.changes_of_holder, "no lock changed hands");
}

fn must_break(rules: &Rules, word: &str) {
    let broken = explore(rules).broken.expect("the model did not notice");
    assert!(broken.contains(word), "{broken}");
}

/// The wall clocks of the managers are an hour apart.
fn by_the_time_stamp(seen: &Observation, me: &str, timing: &Timing, now: Instant) -> Decision {
    match seen.seen() {
        Seen::Present(Record {
            holder: Some(holder),
            renewed: Some(renewed),
            ..
        }) if holder != me && READER_WALL.duration_since(*renewed).unsigned_abs() > timing.lease_duration => {
            Decision::TakeOver
        }
        _ => decide(seen, me, timing, now),
    }
}

#[test]
fn judging_by_the_time_stamp_of_another_machine_breaks_it() {
    must_break(
        &Rules {
            decide: by_the_time_stamp,
            ..real()
        },
        "held by both",
    );
}

fn after_the_renew_deadline(seen: &Observation, me: &str, timing: &Timing, now: Instant) -> Decision {
    match decide(seen, me, timing, now) {
        Decision::Wait(left) if left <= timing.lease_duration - timing.renew_deadline => Decision::TakeOver,
        decision => decision,
    }
}

#[test]
fn taking_over_after_the_renew_deadline_already_breaks_it() {
    // Equal clocks would forgive this.
    must_break(
        &Rules {
            decide: after_the_renew_deadline,
            ..real()
        },
        "held by both",
    );
}

fn as_long_as_the_lease(timing: &Timing, sent: Instant) -> Instant {
    sent + timing.lease_duration
}

#[test]
fn working_for_the_whole_lease_duration_breaks_it() {
    must_break(
        &Rules {
            valid_until: as_long_as_the_lease,
            ..real()
        },
        "held by both",
    );
}

#[test]
fn clocks_whose_speeds_differ_more_than_lease_and_deadline_break_it() {
    must_break(
        &Rules {
            gains: 2,
            gains_every: 1,
            ..real()
        },
        "held by both",
    );
}

#[test]
fn writing_without_comparing_breaks_it() {
    must_break(
        &Rules {
            compare_and_swap: false,
            ..real()
        },
        "held by both",
    );
}

fn never_take_over(seen: &Observation, me: &str, timing: &Timing, now: Instant) -> Decision {
    match decide(seen, me, timing, now) {
        Decision::TakeOver => Decision::Wait(Duration::from_secs(1)),
        decision => decision,
    }
}

#[test]
fn a_candidate_that_never_takes_over_breaks_it() {
    must_break(
        &Rules {
            decide: never_take_over,
            ..real()
        },
        "without a holder",
    );
}
