//! Garden-controller-manager as a process that is stopped in the middle of its work, and resumed after its
//! successor has written.
//!
//! Each process talks to a real API server through its own relay. The relay records the requests of the
//! process and can hold back the answers. A request that arrives at the relay after the resume was sent after
//! the resume. The relay read all bytes that the process had given to the operating system before, because
//! the successor has waited for a lease duration since.
//!
//! `STOPPED_TEST_SEED` repeats a run.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::time::Duration;

use anyhow::Result;
use api::{Target, crds_of, gardencore::Project};
use fastrand::Rng;
use futures::{StreamExt, stream};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Namespace};
use kube::{Api, Client, api::PostParams};
use nix::{
    sys::signal::{
        Signal::{self, SIGCONT, SIGSTOP},
        kill,
    },
    unistd::Pid,
};
use serde_json::json;
use tempfile::TempDir;
use testkit::{Asked, ControlPlane, Relay, Server, apply_crds, free_port};
use tokio::time::interval;

/// Longer than a start, an election and some hundred writes take on a busy machine.
const LONG: Duration = Duration::from_secs(60);
/// Objects that a controller reconciles in parallel. In this test a single controller has work.
const WORKERS: usize = 5;
/// New Projects for each process that is stopped. A Project takes four writes, and a process that has just
/// acquired the lock reads all existing Projects first.
const LOAD: usize = 80;
/// The write of its work at which a process is stopped: long before the end of the work.
const STOP_AT: std::ops::Range<usize> = 8..100;
/// The points at which processes are stopped.
const STOPS: [Stop; 5] = [
    Stop::BeforeChecks,
    Stop::Anywhere,
    Stop::InEffects,
    Stop::Anywhere,
    Stop::Anywhere,
];

/// The point at which a process is stopped.
#[derive(Clone, Copy, Debug)]
enum Stop {
    /// All its workers wait for an answer. The answers arrive while the process is stopped: its next action
    /// is a check.
    BeforeChecks,
    /// Like `BeforeChecks`, but the answers arrive after the process is resumed.
    InEffects,
    /// Anywhere.
    Anywhere,
}

impl Stop {
    /// How many requests may leave after the resume. Zero if all workers wait for answers, because no request
    /// is between its check and the wire. At an arbitrary point each worker may have such a request, which no
    /// time-based lock can take back.
    const fn may_still_send(self) -> usize {
        match self {
            Self::BeforeChecks | Self::InEffects => 0,
            Self::Anywhere => WORKERS,
        }
    }
}

/// Writes and reads of the work. The requests of the election run without a permit.
fn is_work(asked: &Asked) -> bool {
    !asked.is_of_election()
}

fn is_write(asked: &Asked) -> bool {
    is_work(asked) && asked.is_write()
}

/// A process, and its recorded requests.
struct Manager {
    name: String,
    relay: Relay,
    process: Server,
}

impl Manager {
    async fn start(name: String, api: Client, folder: &TempDir) -> Result<Self> {
        let relay = Relay::start(api).await?;
        let kubeconfig = folder.path().join(format!("{name}.kubeconfig"));
        std::fs::write(&kubeconfig, serde_yaml_ng::to_string(&relay.kubeconfig()?)?)?;
        let args = [
            format!("--garden-kubeconfig={}", kubeconfig.display()),
            format!("--health-address=127.0.0.1:{}", free_port()?),
            format!("--concurrent-syncs={WORKERS}"),
            // The test waits for this duration each time.
            "--leader-elect-lease-duration=10s".to_owned(),
            "--leader-elect-renew-deadline=9s".to_owned(),
            "--leader-elect-retry-period=500ms".to_owned(),
        ];
        let program = env!("CARGO_BIN_EXE_garden-controller-manager");
        let process = Server::start(&name, program, folder.path(), args, &[])?;
        Ok(Self { name, relay, process })
    }

    fn writes(&self) -> usize {
        self.relay.asked().iter().filter(|asked| is_write(asked)).count()
    }
}

/// A single thread takes the signal and stops the other threads, which may run for a while on a busy machine.
async fn stands_still(id: u32) -> Result<()> {
    testkit::eventually("every thread has stopped", LONG, || async {
        for thread in std::fs::read_dir(format!("/proc/{id}/task"))? {
            let stat = std::fs::read_to_string(thread?.path().join("stat"))?;
            let state = stat.rsplit(") ").next().unwrap_or_default();
            anyhow::ensure!(state.starts_with('T'), "{stat}");
        }
        anyhow::Ok(())
    })
    .await
}

/// Sends a signal to a process that may have ended; an error is then ignored.
fn signal(id: u32, which: Signal) {
    let _ = kill(Pid::from_raw(i32::try_from(id).unwrap()), which);
}

/// Waits until a process has ended, and returns its last error.
async fn ended(process: &mut Server) -> String {
    let mut looks = interval(Duration::from_millis(50));
    loop {
        looks.tick().await;
        if let Err(ended) = process.check_alive() {
            return ended.to_string();
        }
    }
}

/// Two managers of a garden, and work for the managers.
struct Field {
    plane: ControlPlane,
    folder: TempDir,
    started: usize,
    loads: usize,
}

impl Field {
    async fn new() -> Result<Self> {
        let plane = ControlPlane::start("garden").await?;
        apply_crds(&plane.admin(), &crds_of(Target::Garden)).await?;
        let mut garden = Namespace::default();
        garden.metadata.name = Some("garden".to_owned());
        Api::all(plane.admin())
            .create(&PostParams::default(), &garden)
            .await?;
        Ok(Self {
            plane,
            folder: tempfile::tempdir()?,
            started: 0,
            loads: 0,
        })
    }

    async fn start(&mut self) -> Result<Manager> {
        self.started += 1;
        // With a separate client: the requests of a manager must not wait for the second manager.
        let api = self.plane.client("manager", &["system:masters"]).await?;
        Manager::start(format!("manager-{}", self.started), api, &self.folder).await
    }

    /// Makes new Projects.
    async fn load(&self) -> Result<()> {
        let (projects, load): (Api<Project>, usize) = (Api::all(self.plane.admin()), self.loads);
        let making = (0..LOAD).map(|number| {
            let projects = projects.clone();
            async move {
                let project = json!({
                    "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Project",
                    "metadata": {"name": format!("p{load}-{number}")}, "spec": {},
                });
                let project = serde_json::from_value(project)?;
                projects.create(&PostParams::default(), &project).await?;
                anyhow::Ok(())
            }
        });
        let made: Vec<Result<()>> = stream::iter(making).buffer_unordered(8).collect().await;
        made.into_iter().collect()
    }

    /// Stops the holder at about this write, with new work for the holder. `false` if the holder has lost the
    /// lock before that, which may happen on a very busy machine.
    async fn stopped_at_work(&mut self, holder: &mut Manager, at: usize, stop: Stop) -> bool {
        self.loads += 1;
        assert!(
            self.loads < 3 * STOPS.len(),
            "locks are lost again and again without a stop"
        );
        let Manager { relay, process, .. } = holder;
        let id = process.id();
        let stopping = async {
            relay.until(at, LONG, is_write).await?;
            // A process that is resumed in time continues: so a later silence is due to the lock.
            signal(id, SIGSTOP);
            let goes_on = relay.asked().iter().filter(|asked| is_write(asked)).count() + WORKERS + 1;
            signal(id, SIGCONT);
            relay.until(goes_on, LONG, is_write).await?;
            if !matches!(stop, Stop::Anywhere) {
                relay.hold_after(0);
                relay.until_held(WORKERS, LONG).await?;
            }
            signal(id, SIGSTOP);
            stands_still(id).await?;
            if matches!(stop, Stop::BeforeChecks) {
                relay.release();
            }
            anyhow::Ok(())
        };
        let stopped = async {
            tokio::select! {
                stopped = stopping => stopped.map(|()| true),
                _ = ended(process) => Ok(false),
            }
        };
        let (loaded, stopped) = tokio::join!(self.load(), stopped);
        loaded.unwrap();
        stopped.unwrap()
    }

    /// Resumes a stopped process, and waits for its end. Returns the requests that the process has sent
    /// since.
    async fn woken(&self, holder: &mut Manager) -> Vec<Asked> {
        let held_by = self.holder().await;
        let before = holder.relay.asked().len();
        signal(holder.process.id(), SIGCONT);
        holder.relay.release();
        let said = testkit::timeout(LONG, ended(&mut holder.process)).await.unwrap();
        assert!(said.contains("could not be renewed"), "{said}");
        assert_eq!(self.holder().await, held_by, "it took the lock of its successor");
        let mut asked = holder.relay.asked().split_off(before);
        asked.retain(is_work);
        asked
    }

    async fn holder(&self) -> String {
        let leases: Api<Lease> = Api::namespaced(self.plane.admin(), "garden");
        let lease = leases.get("garden-controller-manager").await.unwrap();
        lease.spec.unwrap().holder_identity.unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_that_was_stopped_begins_nothing_after_its_successor_has_written() {
    let seed =
        std::env::var("STOPPED_TEST_SEED").map_or_else(|_| fastrand::u64(..), |seed| seed.parse().unwrap());
    println!("STOPPED_TEST_SEED={seed}");
    let mut random = Rng::with_seed(seed);
    let mut field = Field::new().await.unwrap();
    let mut holder = field.start().await.unwrap();
    holder.relay.until(1, LONG, is_work).await.unwrap();
    let mut late = 0;
    for stop in STOPS {
        let (successor, sent) = loop {
            let successor = field.start().await.unwrap();
            // The successor waits for the lock from now on.
            let waits = successor.relay.until(1, LONG, Asked::is_of_election);
            waits.await.unwrap();
            let at = holder.writes() + random.usize(STOP_AT);
            if !field.stopped_at_work(&mut holder, at, stop).await {
                holder = successor;
                continue;
            }
            successor.relay.until(1, LONG, is_write).await.unwrap();
            let sent = field.woken(&mut holder).await;
            assert!(
                sent.len() <= stop.may_still_send(),
                "{} stopped {stop:?} at write {at} (seed {seed}) has sent after its successor had written: {sent:#?}",
                holder.name
            );
            break (successor, sent);
        };
        late += sent.len();
        holder = successor;
    }
    println!("{late} requests were between check and wire");
}
