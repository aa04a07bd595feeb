//! A candidate as a separate process: this test binary, started again with an environment variable.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use lease::{Elector, Ended, Lock, Metrics, Timing};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use testkit::Server;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::acts;

/// The variable that makes a process of this binary a candidate; its value is an [`Orders`] in JSON.
const ORDERS: &str = "LEASE_TEST_CANDIDATE";

/// Much shorter than any duration of the timing, so that an act at a wrong moment is likely to be seen.
const ACT_EVERY: Duration = Duration::from_millis(10);

/// The parameters of a candidate.
#[derive(Clone, Serialize, Deserialize)]
pub struct Orders {
    pub kubeconfig: PathBuf,
    pub lock: String,
    pub identity: String,
    /// Lease duration, renew deadline, retry period, in milliseconds.
    pub timing: [u64; 3],
    /// The error of the wall clock, in seconds.
    pub wall_clock_off: i64,
    pub acts: PathBuf,
    /// Breaks the rule that work must be a single future: acts in a thread that no drop stops.
    pub detaches: bool,
}

/// A candidate's process, killed when this value is dropped.
pub struct Candidate {
    pub identity: String,
    server: Server,
}

impl Candidate {
    pub fn start(orders: &Orders, folder: &Path) -> Self {
        let program = std::env::current_exe().unwrap();
        let args = ["--exact", "candidate::process", "--ignored", "--nocapture"];
        let text = serde_json::to_string(orders).unwrap();
        let env = [(ORDERS, text.as_str()), ("RUST_BACKTRACE", "0")];
        let server = Server::start(&orders.identity, program.to_str().unwrap(), folder, args, &env).unwrap();
        Self {
            identity: orders.identity.clone(),
            server,
        }
    }

    pub fn signal(&self, which: Signal) {
        // The process may have ended; then the signal has no receiver.
        let _ = kill(Pid::from_raw(i32::try_from(self.server.id()).unwrap()), which);
    }

    pub fn is_alive(&mut self) -> bool {
        self.server.check_alive().is_ok()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.server.log()).unwrap_or_default()
    }
}

fn detach(orders: &Orders) {
    let orders = orders.clone();
    std::thread::spawn(move || {
        loop {
            acts::act(&orders.acts, &orders.identity, || true);
            #[allow(clippy::disallowed_methods)] // this thread has no further work
            std::thread::sleep(ACT_EVERY);
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "it is the process that other tests start, and does nothing by itself"]
async fn process() {
    let Ok(text) = std::env::var(ORDERS) else { return };
    tracing_subscriber::fmt().with_ansi(false).init();
    // As the managers' `Process` does: the default provider of a build depends on the other crates in the
    // build.
    rustls::crypto::ring::default_provider()
        .install_default()
        .unwrap();
    let orders: Orders = serde_json::from_str(&text).unwrap();
    let kubeconfig = Kubeconfig::read_from(&orders.kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .unwrap();
    let client = Client::try_from(config).unwrap();

    let [lease, renew, retry] = orders.timing.map(Duration::from_millis);
    let timing = Timing::new(lease, renew, retry).unwrap();
    let lock = Lock::new(client, "default", &orders.lock, &orders.identity);
    let off = SignedDuration::from_secs(orders.wall_clock_off);
    #[allow(clippy::disallowed_methods)] // wrong on purpose
    let wall_clock = Arc::new(move || jiff::Timestamp::now() + off);
    let elector = Elector::new(lock, timing, Metrics::default()).with_wall_clock(wall_clock);

    let shutdown = CancellationToken::new();
    let mut terminated = signal(SignalKind::terminate()).unwrap();
    let orders = &orders;
    let running = elector.with_lease(shutdown.clone(), |held| async move {
        if orders.detaches {
            detach(orders);
        }
        loop {
            acts::act(&orders.acts, &orders.identity, || held.is_valid());
            tokio::time::sleep(ACT_EVERY).await;
        }
    });
    let telling = async {
        terminated.recv().await;
        shutdown.cancel();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        outcome = running => match outcome {
            Ok(Ended::Done(())) => unreachable!("the work never ends"),
            Ok(Ended::Shutdown) => println!("ended: shutdown"),
            Err(lost) => panic!("ended: {lost}"),
        },
        () = telling => {}
    }
}
