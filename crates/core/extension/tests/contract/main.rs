//! The contract, proven for actuators that keep the contract, and failed for each kind of violation. Two
//! seeds with real API servers for all cases.
#![allow(clippy::unwrap_used, clippy::panic, clippy::large_futures)]

mod example;
mod hanging;
mod isolated;
mod kinds;
mod machines;
mod pods_first;
mod reports;
mod restored;
mod told;
mod toy;
mod world;
mod wrong;
mod zones;

use std::ops::Deref;

use anyhow::Result;
use testkit::PlayedKubelet;
use world::Seeds;

/// Two seeds whose pods get ready.
struct TwoSeeds {
    // Seeds without nodes have no kubelet that reports on pods.
    _pods: [PlayedKubelet; 2],
    seeds: Seeds,
}

impl TwoSeeds {
    async fn start() -> Result<Self> {
        let seeds = Seeds::start().await?;
        Ok(Self {
            _pods: [&seeds.a, &seeds.b].map(PlayedKubelet::start),
            seeds,
        })
    }
}

impl Deref for TwoSeeds {
    type Target = Seeds;

    fn deref(&self) -> &Seeds {
        &self.seeds
    }
}

// R7-04, R7-30, R7-31, R7-34: state is kept and found again in the destination seed, and no actuator acts in
// the seed that released the shoot. A build without optimisation needs a large stack.
testkit::scenarios! {
    mod keeps for TwoSeeds = TwoSeeds::start(), stack 32 << 20;
    at_once:
    toy::{keeps_it},
    wrong::{each_fails},
    example::{keeps_it},
    machines::{keep_it},
    kinds::{each_runs_through_the_protocol},
    reports::{tell_what_is_wrong},
    isolated::{zones_are_left_and_filled_again},
    hanging::{zones_are_left_in_their_budget},
    pods_first::{pods_leave_before_capacity_is_awaited},
    restored::{are_all_there_before_anybody_acts},
    told::{what_keeps_machines_is_told},
    zones::{are_closed_by_the_contract, wait_for_their_machines};
}
