//! The real election under everything that happens to it, on paused time: several processes, one Lease, and
//! requests that are slow, get lost, are carried out without an answer or after their sender has gone;
//! processes that are stopped and woken, killed, ended and started anew; a Lease that is deleted. A run
//! follows from its seed.
//!
//! In every run
//! - nobody gets the lock while another one's permit is good;
//! - no write of a holder is carried out after the next one has begun.
//!
//! The Lease is deleted once in a run: what is made again and deleted again between two looks of a candidate
//! cannot be told from what was never made again.
//!
//! A simulation that cannot fail proves nothing: the rest of this file breaks one rule at a time and sees it
//! fail. `LEASE_SIMULATION_SEED` runs one seed only.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::unchecked_time_subtraction)]

mod network;
mod process;
mod world;

use crate::mutation::Mutation;
use world::{Rules, Run, run};

/// So many runs of ten minutes each.
const RUNS: u64 = 150;

fn seeds() -> std::ops::Range<u64> {
    match std::env::var("LEASE_SIMULATION_SEED") {
        Ok(seed) => {
            let seed = seed.parse().expect("a number");
            seed..seed + 1
        }
        Err(_) => 0..RUNS,
    }
}

#[test]
fn no_two_holds_overlap_and_no_write_comes_late() {
    let mut all = Run::default();
    for seed in seeds() {
        let run = run(seed, Rules::default());
        assert_eq!(run.broken, None, "seed {seed}");
        all.holds += run.holds;
        all.writes += run.writes;
        all.losses += run.losses;
    }
    println!("{all:?}");
    // What does not happen is not tested.
    assert!(
        all.holds > 1000 && all.writes > 10_000 && all.losses > 100,
        "{all:?}"
    );
}

/// The first run that notices.
fn must_break(rules: Rules, word: &str) {
    let broken = seeds().find_map(|seed| run(seed, rules).broken);
    let broken = broken.expect("the simulation did not notice");
    assert!(broken.contains(word), "{broken}");
}

fn with(mutation: Mutation) -> Rules {
    Rules {
        mutation: Some(mutation),
        ..Rules::default()
    }
}

#[test]
fn a_hold_that_counts_from_the_answer_breaks_it() {
    must_break(with(Mutation::TimeAfterWrite), "is held by both");
}

#[test]
fn an_observation_that_counts_from_before_the_read_breaks_it() {
    must_break(with(Mutation::SeenBeforeRead), "is held by both");
}

#[test]
fn a_candidate_that_does_not_wait_where_no_lease_is_breaks_it() {
    must_break(with(Mutation::NoWaitWithoutLease), "is held by both");
}

#[test]
fn giving_back_without_a_drain_breaks_it() {
    must_break(with(Mutation::NoDrain), "was carried out after");
}

#[test]
fn requests_without_a_fence_break_it() {
    let unfenced = Rules {
        fenced: false,
        ..Rules::default()
    };
    must_break(unfenced, "was carried out after");
}
