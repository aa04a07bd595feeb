//! A single run: the first owner's process, the faults, and the invariants.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use fastrand::Rng;
use futures::future::{Either, select};
use permit::{Clock, Permit};
use tokio::time::{Instant, sleep, sleep_until, timeout_at};

use super::history::{History, LASTS, Rules, Weather, is_in};
use super::world::{World, ZONE, servers};
use crate::{Authorities, OwnershipClaim, Report, Standing, Watch, Witnesses};

/// Interval of the check of the invariants.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The result of a run.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) broken: Option<String>,
    pub(super) permits: usize,
    pub(super) expired: usize,
    pub(super) losses: usize,
    pub(super) checks: usize,
}

/// The observations from outside.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    run: Run,
    permits: Vec<Permit>,
    /// The present standing is `Owner`.
    is_owner: bool,
}

/// Runs the simulation of this seed.
pub(super) fn run(seed: u64, rules: Rules) -> Run {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    let outside = Seen::default();
    runtime.block_on(async {
        let history = History::draw(&mut Rng::with_seed(seed), rules);
        let world = World::new(history, rules, seed ^ 0x5eed);
        let owner = pin!(first_owner(&world, &outside));
        let looker = pin!(watch_permits(&world, &outside));
        match select(owner, looker).await {
            Either::Left(((), looker)) => looker.await,
            Either::Right(((), _)) => {}
        }
    });
    let mut state = outside.0.lock().unwrap();
    std::mem::take(&mut state.run)
}

/// The processes, each after the end of the previous process, all with the claim to epoch 1, until a process
/// has lost the claim.
async fn first_owner(world: &World, seen: &Seen) {
    let mut kills = world.history.kills.iter().copied().chain([LASTS]);
    let claim = OwnershipClaim::new("owner.demo.dev.internal.example", "seed-a", 1).unwrap();
    let claim = &claim;
    loop {
        let witnesses = Witnesses {
            authorities: Arc::new(Authorities::named(ZONE, servers()).unwrap()),
            wire: Arc::new(world.clone()),
            second: Arc::new(world.clone()),
        };
        let mut watch = Watch::new(claim.clone(), world.history.terms, witnesses, clock(world)).unwrap();
        watch.mutation = world.rules.mutation;
        let mut reports = watch.reports();
        let mut process = pin!(watch.run());
        let told = poll_fn(|context| {
            if is_in(&world.history.stops, world.now()) {
                return Poll::Pending;
            }
            let ended = process.as_mut().poll(context);
            if reports.has_changed().unwrap_or(false) {
                seen.record_report(&reports.borrow_and_update());
            }
            ended
        });
        let Some(kill) = kills.next() else { return };
        match timeout_at(world.start + kill, woken(world, told)).await {
            Ok(loss) => {
                let now = world.now();
                if now < world.history.taken_from() {
                    seen.break_with(format!(
                        "at {now:?} a shoot is lost that no seed has taken: {loss}"
                    ));
                }
                seen.0.lock().unwrap().run.losses += 1;
                return;
            }
            Err(_) => sleep(Duration::from_secs(1)).await,
        }
    }
}

/// The process is polled at the end of each stop.
pub(super) async fn woken<F: Future>(world: &World, process: F) -> F::Output {
    let mut process = pin!(process);
    let mut ends: Vec<Duration> = world.history.stops.iter().map(|(_, until)| *until).collect();
    ends.sort_unstable();
    for end in ends {
        match select(process.as_mut(), pin!(sleep_until(world.start + end))).await {
            Either::Left((output, _)) => return output,
            Either::Right(_) => {}
        }
    }
    process.await
}

pub(super) fn clock(world: &World) -> Clock {
    let (world, base) = (world.clone(), Duration::from_secs(3600));
    Clock::with_suspension(move || {
        base - world
            .history
            .clock_is_behind(world.now(), world.rules.clock_counts_stops)
    })
}

impl Seen {
    fn record_report(&self, report: &Report) {
        let mut state = self.0.lock().unwrap();
        state.run.checks += 1;
        match &report.standing {
            Standing::Owner(permit) => {
                if !state.is_owner {
                    state.run.permits += 1;
                }
                state.permits.push(permit.clone());
                // Most reports repeat the same permit.
                let old = state.permits.len().saturating_sub(4);
                state.permits.drain(..old);
                state.is_owner = true;
            }
            Standing::Unconfirmed => {
                if state.is_owner {
                    state.run.expired += 1;
                }
                state.is_owner = false;
            }
            Standing::Lost(_) => state.is_owner = false,
        }
    }

    fn break_with(&self, said: String) {
        self.0.lock().unwrap().run.broken.get_or_insert(said);
    }

    fn good(&self) -> usize {
        let state = self.0.lock().unwrap();
        state.permits.iter().filter(|permit| permit.is_valid()).count()
    }
}

async fn watch_permits(world: &World, seen: &Seen) {
    let mut was_owner = false;
    let end: Instant = world.start + LASTS;
    while Instant::now() < end {
        let now = world.now();
        let is_owner = seen.good() > 0;
        if is_owner && now >= world.history.must_have_ended() {
            seen.break_with(format!(
                "at {now:?} a permit of epoch 1 is good when a request under it may arrive after the fence"
            ));
            return;
        }
        let is_quiet = now < world.history.quiet_until();
        if world.rules.weather == Weather::OneAtATime && is_quiet && was_owner && !is_owner {
            seen.break_with(format!(
                "at {now:?} the permit has ended while a witness answered"
            ));
            return;
        }
        was_owner |= is_owner;
        sleep(LOOK_EVERY).await;
    }
    // A process that can ask learns of the loss.
    if world.rules.weather == Weather::OneAtATime && seen.0.lock().unwrap().run.losses == 0 {
        seen.break_with("the loss was never noticed".to_owned());
    }
}
