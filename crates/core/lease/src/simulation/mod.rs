//! The real election under all simulated faults, on paused time: several processes and a single Lease.
//! Requests are slow, get lost, and are carried out without an answer or after the sender's end. Processes
//! are stopped and woken, killed, ended and restarted. The Lease is deleted. A run is determined by the seed
//! of its random numbers.
//!
//! In every run
//! - no process wins the lock while the permit of another process is valid;
//! - no write of a holder is carried out after the next holder has begun.
//!
//! The Lease is deleted once in a run: a Lease that is created and deleted again between two reads of a
//! candidate looks as if never created.
//!
//! A simulation that cannot fail proves no property: the rest of this file breaks each rule in turn and
//! expects a failure. `LEASE_SIMULATION_SEED` runs a single seed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::unchecked_time_subtraction)]

mod network;
mod process;
mod world;

use crate::mutation::Mutation;
use world::{Rules, Run, run};

/// Number of runs, of ten minutes each.
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
    // An event that never happens is not tested.
    assert!(
        all.holds > 1000 && all.writes > 10_000 && all.losses > 100,
        "{all:?}"
    );
}

/// The first run that detects the fault.
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
