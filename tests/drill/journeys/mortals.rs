//! The processes that die on the way: the gardenlets of both seeds, and garden-controller-manager.

use std::convert::Infallible;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use kube::Client;
use manager::{GARDEN_CONTROLLER_MANAGER, GARDENLET};
use tokio::sync::{Mutex, MutexGuard};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::garden_controllers;
use crate::seed::RunningSeed;
use crate::world::World;

/// Shortest and longest life of the first processes, in milliseconds. A move takes longer here.
const LIVES: std::ops::Range<u64> = 1_000..6_000;
/// Longest pause before a successor starts, in milliseconds.
const AWAY: u64 = 700;
/// After so many deaths, lives are twice as long, after twice as many deaths three times as long, and so on.
/// So every journey ends even on a slow machine.
const LONGER_AFTER: u32 = 9;

/// The kind of a process, with the start parameters.
enum Kind<'w> {
    Gardenlet(&'w RunningSeed),
    /// The client for the garden, and further flags.
    Manager(Client, Vec<String>),
}

impl Kind<'_> {
    fn start(&self) -> Result<JoinSet<()>> {
        match self {
            Self::Gardenlet(seed) => Ok(seed.gardenlet(GARDENLET.controllers)),
            Self::Manager(garden, flags) => {
                garden_controllers::start_with(garden, GARDEN_CONTROLLER_MANAGER.controllers, flags)
            }
        }
    }
}

struct Mortal<'w> {
    kind: Kind<'w>,
    running: Mutex<JoinSet<()>>,
}

impl<'w> Mortal<'w> {
    fn start(kind: Kind<'w>) -> Result<Self> {
        let running = Mutex::new(kind.start()?);
        Ok(Self { kind, running })
    }

    /// Kills the process at any point of the work.
    async fn kill(&self) -> Dead<'_> {
        let mut running = self.running.lock().await;
        running.shutdown().await;
        Dead {
            kind: &self.kind,
            running,
        }
    }
}

/// A killed process. Dropping the value starts the successor.
pub struct Dead<'a> {
    kind: &'a Kind<'a>,
    running: MutexGuard<'a, JoinSet<()>>,
}

impl Drop for Dead<'_> {
    fn drop(&mut self) {
        match self.kind.start() {
            Ok(running) => *self.running = running,
            Err(error) => eprintln!("a process does not start again: {error:#}"),
        }
    }
}

/// All processes. First the gardenlets, in the order of the seeds.
pub struct Mortals<'w> {
    all: [Mortal<'w>; 3],
    killed: AtomicU32,
}

impl<'w> Mortals<'w> {
    /// Starts all processes. `garden`: the client of garden-controller-manager; `flags`: further flags of
    /// garden-controller-manager.
    pub fn start(world: &'w World, garden: Client, flags: &[String]) -> Result<Self> {
        let [a, b] = &world.seeds;
        Ok(Self {
            all: [
                Mortal::start(Kind::Gardenlet(a))?,
                Mortal::start(Kind::Gardenlet(b))?,
                Mortal::start(Kind::Manager(garden, flags.to_vec()))?,
            ],
            killed: AtomicU32::new(0),
        })
    }

    /// Kills the gardenlet of a seed until the answer is dropped.
    pub async fn kill_gardenlet(&self, seed: usize) -> Dead<'_> {
        self.all[seed].kill().await
    }

    /// Kills the processes in turn, for ever.
    pub async fn die_now_and_then(&self, random: &mut Rng) -> Infallible {
        loop {
            let longer = 1 + self.killed() / LONGER_AFTER;
            sleep(longer * Duration::from_millis(random.u64(LIVES))).await;
            let dead = self.all[random.usize(..self.all.len())].kill().await;
            self.killed.fetch_add(1, Ordering::Relaxed);
            sleep(Duration::from_millis(random.u64(..AWAY))).await;
            drop(dead);
        }
    }

    /// How many died by chance.
    pub fn killed(&self) -> u32 {
        self.killed.load(Ordering::Relaxed)
    }
}
