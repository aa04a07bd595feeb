//! The sidecar beside the first owner's etcd. The reaction to the watch (`SidecarEvent::from_standing`,
//! `next_state`) and the seal (`SealProgress::next_step`) are the code of the real process, under all faults
//! of the simulation and under kills in the middle of a seal. Simulated are the sockets and files of the
//! process: the gate, the mark on the volume, `ownership.json`, the final snapshot.
//!
//! In every run
//! - no write passes the gate when the destination may have begun (I1);
//! - no write passes after the final snapshot: such a write would be acknowledged, and silently lost;
//! - etcd has received SIGTERM, or is sealed, whenever the gate is shut.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Poll;
use std::time::Duration;

use fastrand::Rng;
use futures::future::{Either, select};
use permit::Permit;
use tokio::sync::watch::Receiver;
use tokio::time::{sleep, timeout, timeout_at};

use super::history::{History, LASTS, Rules, Sidecar, is_in};
use super::run::{LOOK_EVERY, clock, woken};
use super::seeds;
use super::world::{World, ZONE, servers};
use crate::gates::{SealProgress, SealStep, forwards};
use crate::marks::OwnershipObject;
use crate::sidecar_state::{SidecarAction, SidecarEvent, SidecarState, next_state};
use crate::tracker::Standing;
use crate::witness::SecondWitness;
use crate::{Authorities, OwnershipClaim, Report, Watch, Witnesses};

/// Number of runs, of five minutes each.
const RUNS: u64 = 2000;

/// Upper bound of a step of a seal, in milliseconds.
const STEP: u64 = 2000;

/// Maximum number of kills in the middle of a seal, or right after.
const KILLS: usize = 3;

/// The results of runs.
#[derive(Debug, Default)]
struct Run {
    broken: Option<String>,
    tenures: usize,
    suspended: usize,
    sealed: usize,
    killed: usize,
    saved: usize,
    writes: usize,
}

/// The first owner's site. All fields except the gate outlive processes.
#[derive(Clone)]
struct Site {
    world: World,
    state: Arc<Mutex<SiteState>>,
}

struct SiteState {
    random: Rng,
    /// The permit under which the gate is open.
    gate: Option<Permit>,
    /// The mark on the volume.
    is_marked: bool,
    /// The final snapshot was taken.
    is_saved: bool,
    run: Run,
}

fn run(seed: u64, rules: Rules) -> Run {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let history = History::draw(&mut Rng::with_seed(seed), rules);
        let site = Site {
            world: World::new(history, rules, seed ^ 0x5eed),
            state: Arc::new(Mutex::new(SiteState {
                random: Rng::with_seed(seed ^ 0x51de),
                gate: None,
                is_marked: false,
                is_saved: false,
                run: Run::default(),
            })),
        };
        let lives = pin!(site.lives());
        let clients = pin!(site.clients());
        match select(lives, clients).await {
            Either::Left(((), clients)) => clients.await,
            Either::Right(((), _)) => {}
        }
        std::mem::take(&mut site.state().run)
    })
}

impl Site {
    fn state(&self) -> MutexGuard<'_, SiteState> {
        self.state.lock().unwrap()
    }

    fn is_without(&self, rule: Sidecar) -> bool {
        self.world.rules.sidecar == rule
    }

    fn break_with(&self, said: String) {
        self.state().run.broken.get_or_insert(said);
    }

    async fn pass(&self, longest: u64) {
        let time = self.state().random.u64(..longest);
        sleep(Duration::from_millis(time)).await;
    }

    /// Clients write all the time.
    async fn clients(&self) {
        while self.world.now() < LASTS {
            // A stopped process forwards no write.
            if !is_in(&self.world.history.stops, self.world.now()) {
                self.write();
            }
            sleep(LOOK_EVERY).await;
        }
    }

    fn write(&self) {
        let now = self.world.now();
        let mut state = self.state();
        let Some(permit) = &state.gate else { return };
        let is_valid = permit.is_valid() || self.is_without(Sidecar::OpensTheGateOnce);
        if !forwards(SealProgress::default(), is_valid) {
            return;
        }
        state.run.writes += 1;
        let is_saved = state.is_saved;
        drop(state);
        if now >= self.world.history.take_overs[0].begins {
            self.break_with(format!("at {now:?} a write is acknowledged after the fence"));
        }
        if is_saved {
            self.break_with(format!(
                "at {now:?} a write is acknowledged after the final snapshot"
            ));
        }
    }

    /// Runs the processes, each after the end of the previous process.
    async fn lives(&self) {
        let kills = self.world.history.kills.clone();
        let mut kills = kills.into_iter().chain([LASTS]).peekable();
        while let Some(kill) = kills.peek() {
            let life = self.stopped_at_times(self.live());
            let kill = self.world.start + *kill;
            if timeout_at(kill, woken(&self.world, life)).await.is_err() {
                kills.next();
            }
            self.state().gate = None;
            sleep(Duration::from_secs(1)).await;
        }
    }

    /// Writes that arrived while the process was stopped are forwarded before any other work of the process.
    async fn stopped_at_times<F: Future>(&self, process: F) -> F::Output {
        let mut process = pin!(process);
        let mut was_stopped = false;
        poll_fn(|context| {
            if is_in(&self.world.history.stops, self.world.now()) {
                was_stopped = true;
                return Poll::Pending;
            }
            if std::mem::take(&mut was_stopped) {
                self.write();
            }
            process.as_mut().poll(context)
        })
        .await
    }

    /// A single process, until a kill. The process also ends where a kill hits in the middle of a seal, or
    /// right after.
    async fn live(&self) {
        if !self.was_sealed_before().await {
            self.watch().await;
            self.state().run.sealed += 1;
        }
        let kill = {
            let mut state = self.state();
            let is_hit = state.run.killed < KILLS && state.random.bool();
            is_hit.then(|| Duration::from_millis(state.random.u64(..3 * STEP)))
        };
        let seal = async {
            self.seal().await;
            pending::<()>().await;
        };
        let Some(kill) = kill else {
            return seal.await;
        };
        assert!(timeout(kill, seal).await.is_err(), "nothing else ends it");
        self.state().run.killed += 1;
    }

    async fn was_sealed_before(&self) -> bool {
        if self.state().is_marked {
            return true;
        }
        let bound = self.world.history.terms.settings().store_timeout;
        let said = timeout(bound, SecondWitness::ask(&self.world)).await.ok();
        said.and_then(|said| said.loss(1)).is_some()
    }

    /// Until the shoot is lost.
    async fn watch(&self) {
        let world = &self.world;
        let claim = OwnershipClaim::new("owner.demo.dev.internal.example", "seed-a", 1).unwrap();
        let witnesses = Witnesses {
            authorities: Arc::new(Authorities::named(ZONE, servers()).unwrap()),
            wire: Arc::new(world.clone()),
            second: Arc::new(world.clone()),
        };
        let watch = Watch::new(claim, world.history.terms, witnesses, clock(world)).unwrap();
        let reports = watch.reports();
        let watching = async {
            watch.run().await;
            // The loss is in the reports.
            pending::<()>().await;
        };
        select(pin!(self.follow(reports)), pin!(watching)).await;
    }

    async fn follow(&self, mut reports: Receiver<Report>) {
        let mut guard = SidecarState::default();
        loop {
            let report = reports.borrow_and_update().clone();
            let used = self.state().gate.clone();
            let serves = used.as_ref().is_some_and(Permit::is_valid);
            let was_open = used.is_some();
            let (to, actions) = next_state(guard, SidecarEvent::from_standing(&report.standing, serves));
            guard = to;
            for action in actions {
                let mut state = self.state();
                match (action, &report.standing) {
                    (SidecarAction::Serve, Standing::Owner(permit)) => {
                        assert!(state.gate.is_none(), "the gate is opened twice");
                        state.gate = Some(permit.clone());
                        state.run.tenures += 1;
                    }
                    (SidecarAction::Stop, _) => state.gate = None,
                    (SidecarAction::TerminateEtcd, _) => state.run.suspended += 1,
                    (SidecarAction::Serve | SidecarAction::Seal, _) => {}
                }
            }
            let is_shut = was_open && self.state().gate.is_none();
            if is_shut
                && !actions.contains(&SidecarAction::TerminateEtcd)
                && !actions.contains(&SidecarAction::Seal)
            {
                self.break_with(format!(
                    "at {:?} etcd goes on behind a shut gate",
                    self.world.now()
                ));
            }
            if guard == SidecarState::Sealed {
                return;
            }
            let used = self.state().gate.clone();
            let ends = async {
                match used {
                    Some(permit) => drop(permit.guard(pending::<()>()).await),
                    None => pending().await,
                }
            };
            select(pin!(reports.changed()), pin!(ends)).await;
        }
    }

    async fn seal(&self) {
        let mut done = SealProgress::default();
        while let Some(step) = self.next(done) {
            self.pass(STEP).await;
            match step {
                SealStep::Marker => {
                    self.state().is_marked = true;
                    done.marker = true;
                }
                SealStep::Object => {
                    self.until_the_bucket_answers().await;
                    let stands = self.world.bucket(self.world.now());
                    if OwnershipObject::seal(Some(&stands), 1).is_some() {
                        self.world.is_sealed.store(true, Ordering::SeqCst);
                    }
                    done.object = true;
                }
                SealStep::FinalSnapshot => {
                    self.until_the_bucket_answers().await;
                    let mut state = self.state();
                    state.run.saved += usize::from(!state.is_saved);
                    state.is_saved = true;
                    done.final_snapshot = true;
                }
            }
        }
    }

    fn next(&self, done: SealProgress) -> Option<SealStep> {
        if self.is_without(Sidecar::SavesBeforeItMarks) && !done.final_snapshot {
            return Some(SealStep::FinalSnapshot);
        }
        done.next_step()
    }

    async fn until_the_bucket_answers(&self) {
        while is_in(&self.world.history.second_silent, self.world.now()) {
            sleep(Duration::from_secs(1)).await;
        }
    }
}

fn all(rules: Rules) -> Run {
    let mut all = Run::default();
    for seed in seeds(RUNS) {
        let run = run(seed, rules);
        assert_eq!(run.broken, None, "seed {seed}");
        all.tenures += run.tenures;
        all.suspended += run.suspended;
        all.sealed += run.sealed;
        all.killed += run.killed;
        all.saved += run.saved;
        all.writes += run.writes;
    }
    println!("{all:?}");
    all
}

/// R17-40..49.
#[test]
fn nothing_passes_the_gate_after_the_fence_or_the_final_snapshot() {
    let all = all(Rules::default());
    // An event that never happens is not tested.
    assert!(
        all.tenures > 2000
            && all.suspended > 1000
            && all.sealed > 1000
            && all.killed > 500
            && all.saved > 1000,
        "{all:?}"
    );
    assert!(all.writes > 200_000, "{all:?}");
}

fn must_break(sidecar: Sidecar, word: &str) {
    let rules = Rules {
        sidecar,
        ..Rules::default()
    };
    let broken = seeds(RUNS).find_map(|seed| run(seed, rules).broken);
    let broken = broken.expect("the simulation did not notice");
    assert!(broken.contains(word), "{broken}");
}

#[test]
fn a_final_snapshot_before_the_mark_breaks_it() {
    must_break(Sidecar::SavesBeforeItMarks, "after the final snapshot");
}

#[test]
fn a_gate_that_is_opened_once_and_for_all_breaks_it() {
    must_break(Sidecar::OpensTheGateOnce, "after the fence");
}
