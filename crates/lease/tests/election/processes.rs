//! Several candidates as processes, to which everything happens that happens to processes.
//!
//! A candidate acts every 10 ms while it is elected. Whatever is done to it, no two ever act in turn: one's
//! last act is before the next one's first. `LEASE_TEST_SEED` repeats a run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fastrand::Rng;
use nix::sys::signal::Signal::{SIGCONT, SIGKILL, SIGSTOP, SIGTERM};
use tempfile::TempDir;
use testkit::{ControlPlane, eventually};
use tokio::time::sleep;

use crate::acts::{self, Reign};
use crate::candidate::{Candidate, Orders};

/// Lease duration, renew deadline, retry period.
const SHORT: [u64; 3] = [2000, 1300, 300];
/// For a candidate that must not lose its lock before it is stopped, on a machine that is busy.
const LASTING: [u64; 3] = [6000, 5000, 300];
const DEFAULT: [u64; 3] = [15_000, 10_000, 2000];
/// Three candidates: one acts, one is stopped or dead, one takes over.
const CANDIDATES: usize = 3;
/// Long enough for a start of the API server on a busy machine and an election after it.
const LONG: Duration = Duration::from_secs(90);
/// What a busy machine adds to a hand-over: requests that wait, processes that do not run. Much less than a
/// lease duration.
const BUSY: Duration = Duration::from_secs(8);
/// So many acts may come too late in one run: see [`acts`].
const LATE_AT_MOST: usize = 1;
const HOUR: i64 = 3600;

struct Field {
    orders: Orders,
    folder: TempDir,
    started: u32,
    all: Vec<Candidate>,
}

impl Field {
    fn new(plane: &ControlPlane, lock: &str, timing: [u64; 3]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let orders = Orders {
            kubeconfig: plane.admin_kubeconfig_file(),
            lock: lock.to_owned(),
            identity: String::new(),
            timing,
            wall_clock_off: 0,
            acts: folder.path().join("acts"),
            detaches: false,
        };
        Self {
            orders,
            folder,
            started: 0,
            all: Vec::new(),
        }
    }

    /// Starts one more, whose wall clock is off by so many seconds.
    fn start(&mut self, wall_clock_off: i64) -> String {
        self.started += 1;
        // Logs of all tests may be in one folder.
        let identity = format!("{}-{}", self.orders.lock, self.started);
        let orders = Orders {
            identity: identity.clone(),
            wall_clock_off,
            ..self.orders.clone()
        };
        self.all.push(Candidate::start(&orders, self.folder.path()));
        identity
    }

    /// Starts others for those that have ended, with wall clocks that are off at random.
    fn fill(&mut self, random: &mut Rng) {
        self.all.retain_mut(Candidate::is_alive);
        while self.all.len() < CANDIDATES {
            let off = *random.choice(&[-HOUR, 0, HOUR]).unwrap();
            self.start(off);
        }
    }

    fn acts(&self) -> PathBuf {
        self.orders.acts.clone()
    }

    /// Waits until one of those that were not seen to end was the last to begin, and says who, and all reigns
    /// until then.
    async fn acting(&self) -> (String, Vec<Reign>) {
        let file = self.acts();
        let acting = eventually("somebody acts", LONG, async || {
            let reigns = acts::read(&file);
            match reigns.last().map(|reign| reign.who.clone()) {
                Some(who) if self.get(&who).is_some() => Ok((who, reigns)),
                last => Err(format!("the last one was {last:?}")),
            }
        });
        acting.await.unwrap()
    }

    fn get(&self, who: &str) -> Option<&Candidate> {
        self.all.iter().find(|candidate| candidate.identity == who)
    }

    /// Waits until somebody acts who is not one of these, and says who.
    async fn next_after(&self, others: &[Reign]) -> Reign {
        let file = self.acts();
        let next = eventually("somebody else acts", LONG, async || {
            let new = acts::read(&file)
                .into_iter()
                .find(|r| others.iter().all(|o| o.who != r.who));
            new.ok_or_else(|| format!("nobody but {others:?}"))
        });
        next.await.unwrap()
    }

    /// Waits until this one's log says so.
    async fn log_has(&self, who: &str, text: &str) {
        let candidate = self.get(who).unwrap();
        let said = eventually(text, LONG, async || {
            let log = candidate.log();
            if log.contains(text) { Ok(()) } else { Err(log) }
        });
        said.await.unwrap();
    }
}

fn must_be_apart(file: &Path, what: &str) -> Vec<Reign> {
    let reigns = acts::read(file);
    let overlap = acts::overlap(&reigns);
    assert!(
        overlap.is_none(),
        "two acted at once ({what}): {overlap:?} in {reigns:#?}"
    );
    let late = acts::late(file);
    assert!(
        late <= LATE_AT_MOST,
        "{late} acts after the lock was lost ({what})"
    );
    reigns
}

/// The case that a lock by time is weakest in: the holder is stopped, another one acts, the holder goes on.
async fn stopped_and_woken(field: &Field) {
    // Who acts is known before the signal: the next one may act before it is looked at again.
    let (holder, before) = field.acting().await;
    field.get(&holder).unwrap().signal(SIGSTOP);
    field.next_after(&before).await;
    field.get(&holder).unwrap().signal(SIGCONT);
    field.log_has(&holder, "could not be renewed").await;
    must_be_apart(&field.acts(), "stop and go on");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_most_one_acts_whatever_happens() {
    let seed = std::env::var("LEASE_TEST_SEED").map_or_else(|_| fastrand::u64(..), |s| s.parse().unwrap());
    println!("LEASE_TEST_SEED={seed}");
    let mut random = Rng::with_seed(seed);
    let mut plane = ControlPlane::start("candidates").await.unwrap();
    let mut field = Field::new(&plane, "random", SHORT);
    for off in [-HOUR, 0, HOUR] {
        field.start(off);
    }
    // As often as makes more late acts than are forgiven, if work acts late.
    for _ in 0..=LATE_AT_MOST {
        stopped_and_woken(&field).await;
        field.fill(&mut random);
    }

    let enough = acts::read(&field.acts()).len() + 1;
    let restart_at = random.u32(3..9);
    let mut step = 0;
    // On a slow machine it may take more steps until the lock changes hands.
    while step < 12 || (step < 60 && acts::read(&field.acts()).len() < enough) {
        field.fill(&mut random);
        if step == restart_at {
            plane.stop_api();
            sleep(Duration::from_millis(random.u64(0..4000))).await;
            plane.start_api().await.unwrap();
        }
        // Mostly the one that acts: what happens to the others matters less.
        let acting = acts::read(&field.acts())
            .into_iter()
            .max_by_key(|reign| reign.last);
        let acting = acting
            .and_then(|reign| field.get(&reign.who))
            .filter(|_| random.u8(..) < 170);
        let victim = acting.unwrap_or_else(|| &field.all[random.usize(..CANDIDATES)]);
        match random.u8(..6) {
            0 => victim.signal(SIGTERM),
            1 => victim.signal(SIGKILL),
            _ => {
                victim.signal(SIGSTOP);
                sleep(Duration::from_millis(random.u64(..3500))).await;
                victim.signal(SIGCONT);
            }
        }
        sleep(Duration::from_millis(random.u64(..1000))).await;
        must_be_apart(&field.acts(), &format!("step {step}, seed {seed}"));
        step += 1;
    }

    // After all that somebody new can be elected still.
    for candidate in &field.all {
        candidate.signal(SIGTERM);
    }
    let before = acts::read(&field.acts());
    field.start(0);
    field.next_after(&before).await;
    let reigns = must_be_apart(&field.acts(), &format!("seed {seed}"));
    println!("{} reigns of {} candidates", reigns.len(), field.started);
    assert!(reigns.len() > enough, "hardly anything happened: {reigns:#?}");
}

/// That the file shows what it should: work that is no part of the guarded future is seen to go on after a
/// stop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_was_detached_is_caught_acting_too_late() {
    let plane = crate::world::plane().await;
    let mut field = Field::new(plane, "detached", LASTING);
    field.orders.detaches = true;
    field.start(0);
    let first = field.next_after(&[]).await;
    field.start(0);
    field.get(&first.who).unwrap().signal(SIGSTOP);
    field.next_after(std::slice::from_ref(&first)).await;
    field.get(&first.who).unwrap().signal(SIGCONT);
    let file = field.acts();
    let caught = eventually("it is caught", LONG, async || {
        acts::overlap(&acts::read(&file)).map(|_| ()).ok_or("not yet")
    });
    caught.await.unwrap();
}

/// With the timing that managers use: how long nobody acts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gaps_with_the_default_timing_are_within_bounds() {
    let plane = crate::world::plane().await;
    let mut field = Field::new(plane, "gaps", DEFAULT);
    field.start(0);
    let mut seen = vec![field.next_after(&[]).await];
    let [lease, _, retry] = DEFAULT.map(Duration::from_millis);
    let bounds = [retry + BUSY, lease + retry + BUSY];
    // A machine that stands still makes a gap longer, and none shorter.
    let mut shortest = [Duration::MAX; 2];
    for _ in 0..3 {
        for _ in 0..2 {
            let waiting = field.start(HOUR);
            field.log_has(&waiting, &seen.last().unwrap().who).await;
        }
        for signal in [SIGTERM, SIGKILL] {
            field.get(&seen.last().unwrap().who).unwrap().signal(signal);
            let next = field.next_after(&seen).await;
            seen.push(next);
        }
        let reigns = must_be_apart(&field.acts(), "gaps");
        for (number, pair) in reigns.windows(2).enumerate() {
            let gap = pair[1].first.saturating_sub(pair[0].last);
            shortest[number % 2] = shortest[number % 2].min(gap);
        }
        if shortest[0] <= bounds[0] && shortest[1] <= bounds[1] {
            break;
        }
    }
    println!(
        "nobody acted for {:?} at a clean hand-over, for {:?} after a crash",
        shortest[0], shortest[1]
    );
    assert!(shortest[0] <= bounds[0], "longer than the retry period");
    assert!(
        shortest[1] <= bounds[1],
        "longer than lease duration and retry period"
    );
}
