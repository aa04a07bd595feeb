//! Several candidates as processes, to which everything happens that happens to processes.
//!
//! A candidate acts every 10 ms while it is elected. Whatever is done to it, no two ever act in turn: one's last act is
//! before the next one's first. `LEASE_TEST_SEED` repeats a run.

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
const DEFAULT: [u64; 3] = [15_000, 10_000, 2000];
/// Three candidates: one acts, one is stopped or dead, one takes over.
const CANDIDATES: usize = 3;
/// Long enough for a start of the API server on a busy machine and an election after it.
const LONG: Duration = Duration::from_secs(90);
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
        let identity = format!("candidate-{}", self.started);
        let orders = Orders {
            identity: identity.clone(),
            wall_clock_off,
            ..self.orders.clone()
        };
        self.all.push(Candidate::start(&orders, self.folder.path()));
        identity
    }

    fn acts(&self) -> PathBuf {
        self.orders.acts.clone()
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
    reigns
}

/// The case that a lock by time is weakest in: the holder is stopped, another one acts, the holder goes on.
async fn stopped_and_woken(field: &mut Field) {
    let first = field.next_after(&[]).await;
    field.get(&first.who).unwrap().signal(SIGSTOP);
    let second = field.next_after(&acts::read(&field.acts())).await;
    field.get(&first.who).unwrap().signal(SIGCONT);
    field.log_has(&first.who, "could not be renewed").await;
    let reigns = must_be_apart(&field.acts(), "stop and go on");
    assert_eq!([&reigns[0].who, &reigns[1].who], [&first.who, &second.who]);
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
    stopped_and_woken(&mut field).await;

    let restart_at = random.u32(3..9);
    for step in 0..12 {
        field.all.retain_mut(Candidate::is_alive);
        while field.all.len() < CANDIDATES {
            let off = *random.choice(&[-HOUR, 0, HOUR]).unwrap();
            field.start(off);
        }
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
    assert!(reigns.len() >= 4, "hardly anything happened: {reigns:#?}");
}

/// That the file shows what it should: work that is no part of the guarded future is seen to go on after a stop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_was_detached_is_caught_acting_too_late() {
    let plane = crate::world::plane().await;
    let mut field = Field::new(plane, "detached", SHORT);
    field.orders.detaches = true;
    field.start(0);
    let first = field.next_after(&[]).await;
    field.start(0);
    field.get(&first.who).unwrap().signal(SIGSTOP);
    field.next_after(&acts::read(&field.acts())).await;
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
    let first = field.next_after(&[]).await;
    for _ in 0..2 {
        let waiting = field.start(HOUR);
        field.log_has(&waiting, &first.who).await;
    }

    field.get(&first.who).unwrap().signal(SIGTERM);
    let second = field.next_after(&acts::read(&field.acts())).await;
    field.get(&second.who).unwrap().signal(SIGKILL);
    let before = acts::read(&field.acts());
    field.next_after(&before).await;

    let reigns = must_be_apart(&field.acts(), "gaps");
    let gaps: Vec<Duration> = reigns
        .windows(2)
        .map(|pair| pair[1].first.saturating_sub(pair[0].last))
        .collect();
    println!(
        "nobody acted for {:?} at a clean hand-over, for {:?} after a crash",
        gaps[0], gaps[1]
    );
    assert!(gaps[0] <= Duration::from_secs(2), "longer than the retry period");
    assert!(
        gaps[1] <= Duration::from_secs(17),
        "longer than lease duration and retry period"
    );
}
