//! A single run: processes, faults, and invariants.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use futures::future::{Either, join_all, select};
use jiff::{SignedDuration, Timestamp};
use permit::Permit;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use super::network::Network;
use super::process::{Process, Stopped, Tasks, fence, work};
use crate::mutation::Mutation;
use crate::{Elector, Lock, Metrics, Timing, WallClock};

const PROCESSES: usize = 3;
const LASTS: Duration = Duration::from_secs(600);

/// The rules that are switched off.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) mutation: Option<Mutation>,
    pub(super) fenced: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            mutation: None,
            fenced: true,
        }
    }
}

/// The result of a run.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) broken: Option<String>,
    pub(super) holds: usize,
    pub(super) writes: usize,
    pub(super) losses: usize,
}

/// The observations from outside of all processes.
#[derive(Clone, Default)]
pub(super) struct World(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    run: Run,
    /// The permits of all holds, in order.
    holds: Vec<Permit>,
    /// The hold that began last.
    last: usize,
}

impl World {
    /// A hold begins. Returns the number of the hold. A hold that had expired when won (its process was
    /// stopped) does not count.
    fn begins(&self, permit: &Permit) -> usize {
        let mut state = self.0.lock().unwrap();
        let number = state.holds.len();
        if permit.is_valid() {
            if let Some(other) = state.holds.iter().position(Permit::is_valid) {
                let said =
                    format!("the lock is held by both: hold {number} begins while hold {other} is good");
                state.run.broken.get_or_insert(said);
            }
            state.last = number;
            state.run.holds += 1;
        }
        state.holds.push(permit.clone());
        number
    }

    /// A write of a hold reaches the server.
    pub(super) fn carried_out(&self, hold: usize) {
        let mut state = self.0.lock().unwrap();
        state.run.writes += 1;
        let last = state.last;
        if hold != last {
            let said = format!("a write of hold {hold} was carried out after hold {last} began");
            state.run.broken.get_or_insert(said);
        }
    }

    fn is_broken(&self) -> bool {
        self.0.lock().unwrap().run.broken.is_some()
    }
}

/// A slot that runs a process, and a new process after each end.
#[derive(Default)]
struct Place {
    stopped: Stopped,
    end: Arc<Mutex<CancellationToken>>,
    kill: Arc<Mutex<CancellationToken>>,
}

/// Runs the simulation of this seed.
pub(super) fn run(seed: u64, rules: Rules) -> Run {
    fastrand::seed(seed);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    let world = World::default();
    runtime.block_on(async {
        let network = Network::new(world.clone(), seed);
        // A released Lease exists: a first creation would count as a creation after a deletion.
        network.server.free("lock");
        let places: Vec<Place> = (0..PROCESSES).map(|_| Place::default()).collect();
        let all = places
            .iter()
            .enumerate()
            .map(|(number, place)| live(number, place, &network, &world, rules));
        let fate = trouble(Rng::with_seed(seed ^ 0x5eed), &places, &network, &world);
        match select(Box::pin(join_all(all)), Box::pin(fate)).await {
            Either::Left((never, _)) => drop(never),
            Either::Right(((), _)) => {}
        }
    });
    let mut state = world.0.lock().unwrap();
    std::mem::take(&mut state.run)
}

/// Runs processes in sequence, each with a unique identity.
async fn live(number: usize, place: &Place, network: &Network, world: &World, rules: Rules) {
    for generation in 0.. {
        let (end, kill) = (CancellationToken::new(), CancellationToken::new());
        *place.end.lock().unwrap() = end.clone();
        *place.kill.lock().unwrap() = kill.clone();
        let lock = Lock::new(network.client(), "ns", "lock", format!("{number}-{generation}"));
        // The difference of lease duration and renew deadline is as small as allowed, so that an error of a
        // second shows.
        let timing = Timing::new(
            Duration::from_secs(11),
            Duration::from_secs(10),
            Duration::from_secs(2),
        );
        let elector = Elector::new(lock, timing.unwrap(), Metrics::default())
            .with_mutation(rules.mutation)
            .with_wall_clock(wall_clock());
        let tasks = Tasks::default();
        let lasts = Duration::from_secs([0, 0, 0, 20][fastrand::usize(..4)]);
        let election = elector.with_lease(end, |permit| {
            let hold = world.begins(&permit);
            let client = network.client();
            let client = if rules.fenced {
                fence(client, &permit)
            } else {
                client
            };
            work(hold, client, Arc::clone(&tasks), lasts)
        });
        let process = Process::new(election, Arc::clone(&tasks), Arc::clone(&place.stopped));
        if let Some(Err(_)) = kill.run_until_cancelled(process).await {
            world.0.lock().unwrap().run.losses += 1;
        }
        sleep(Duration::from_millis(fastrand::u64(..3000))).await;
    }
}

/// Follows the paused time. The real clock would stand still in a run.
fn wall_clock() -> WallClock {
    let start = Instant::now();
    Arc::new(move || Timestamp::UNIX_EPOCH + SignedDuration::try_from(start.elapsed()).unwrap())
}

/// The faults of processes and of the Lease.
async fn trouble(mut random: Rng, places: &[Place], network: &Network, world: &World) {
    let start = Instant::now();
    let mut deleted = false;
    while start.elapsed() < LASTS && !world.is_broken() {
        sleep(Duration::from_millis(random.u64(200..8000))).await;
        let place = &places[random.usize(..places.len())];
        match random.u8(..10) {
            0..3 => {
                let until = Instant::now() + Duration::from_millis(random.u64(..30_000));
                *place.stopped.lock().unwrap() = Some(until);
            }
            3..6 => place.end.lock().unwrap().cancel(),
            6 => place.kill.lock().unwrap().cancel(),
            // Once in a run: a Lease that is created and deleted again between two reads looks as if never
            // created.
            7 if !deleted => {
                network.server.delete("lock");
                deleted = true;
            }
            _ => {}
        }
    }
}
