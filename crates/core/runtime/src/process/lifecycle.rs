//! Start and stop of a process: logging, signals, the tasks of the process, `/healthz` and `/metrics`.
//!
//! Every task lives in one set. When a task ends early or a signal arrives, all tasks are asked to stop, get
//! a bounded time, and are then dropped.

use std::{
    collections::HashMap,
    future::Future,
    net::SocketAddr,
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use axum::{Router, http::StatusCode, routing::get};
use tokio::{
    net::TcpListener,
    signal::unix::{SignalKind, signal},
    task::{Id, JoinSet},
};
use tokio_util::sync::CancellationToken;
use tracing::{error, info};
use tracing_subscriber::EnvFilter;

use crate::process::{
    log_filter::log_filter,
    metrics::{Metrics, ScrapedSeries},
    resource_metrics,
};

/// Time for tasks to end after a signal. Shorter than the 30 s after which the kubelet kills.
const STOP_WITHIN: Duration = Duration::from_secs(10);

/// Stack size of a thread in bytes. In a build without optimisation, a watch of a kind with a large
/// specification takes most of the default 2 MiB. An overflow of the stack ends the process. Only used pages
/// of the stack take memory.
const STACK: usize = 8 * 1024 * 1024;

/// Runs a process to the end, on a thread for each core, and reports the reason of a failure. `run` is the
/// last statement in `main` of every manager.
pub fn run(process: impl Future<Output = Result<(), String>>) -> ExitCode {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let ended = match threads.enable_all().thread_stack_size(STACK).build() {
        Ok(threads) => threads.block_on(process),
        Err(error) => Err(format!("threads cannot be started: {error}")),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            error!(%why, "the process ends");
            // Also as plain text: a person who checks why a pod does not start sees this line first.
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// The result of a part, with a sentence after a failure.
type Outcome = Result<(), String>;

/// Checks a part of the process and returns a problem, if any.
type Check = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// The checks of `/healthz`, shared by all clones. A separate task serves the endpoint and can thus report a
/// task that is stuck.
#[derive(Clone, Default)]
pub struct Health(Arc<Mutex<Vec<Check>>>);

impl Health {
    /// While `check` returns a sentence, the endpoint answers 500 with this sentence. `check` must not block.
    pub fn add(&self, check: impl Fn() -> Option<String> + Send + Sync + 'static) {
        let mut checks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        checks.push(Box::new(check));
    }

    /// The endpoint answers 500 with this sentence until the value is dropped.
    #[must_use]
    pub fn awaiting(&self, what: &'static str) -> Awaiting {
        let awaiting = Arc::new(());
        let is_awaited = Arc::downgrade(&awaiting);
        self.add(move || is_awaited.upgrade().map(|_| what.to_owned()));
        Awaiting(awaiting)
    }

    fn answer(&self) -> (StatusCode, String) {
        let checks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match checks.iter().find_map(|check| check()) {
            Some(wrong) => (StatusCode::INTERNAL_SERVER_ERROR, wrong),
            None => (StatusCode::OK, "ok".to_owned()),
        }
    }
}

/// An event that must happen before the process can work.
#[derive(Debug)]
pub struct Awaiting(#[expect(dead_code, reason = "the check asks whether the value still exists")] Arc<()>);

/// A running process with the shared parts of every process.
pub struct Process {
    name: &'static str,
    tasks: JoinSet<Outcome>,
    names: HashMap<Id, &'static str>,
    /// Cancelled when the process is to end.
    pub shutdown: CancellationToken,
    /// The process's metrics.
    pub metrics: Metrics,
    /// The checks of `/healthz`.
    pub health: Health,
    /// The checks of `/readyz`: whether the process can work now. A check for the first list of each
    /// controller is included. A replica that waits for a lock is ready, because the wait is the work of that
    /// replica.
    pub readiness: Health,
}

/// The reason why a process ended early.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// A part ended although the process was to go on.
    #[error("{part} ended: {why}")]
    PartEnded {
        /// Name of the part.
        part: &'static str,
        /// The sentence that the part reported.
        why: String,
    },
    /// Signals cannot be received.
    #[error("signals cannot be received: {0}")]
    Signals(#[from] std::io::Error),
}

impl Process {
    /// Sets up logging (JSON; `RUST_LOG` filters) and the TLS provider. Starts no task yet.
    #[must_use]
    pub fn new(name: &'static str) -> Self {
        let filter = log_filter(std::env::var(EnvFilter::DEFAULT_ENV).ok().as_deref());
        // A second call (tests with several processes in one binary) keeps the first subscriber and provider.
        let _ = tracing_subscriber::fmt()
            .with_env_filter(filter)
            .json()
            .flatten_event(true)
            .try_init();
        let _ = rustls::crypto::ring::default_provider().install_default();
        info!(process = name, version = env!("CARGO_PKG_VERSION"), "starting");
        let (metrics, readiness) = (Metrics::default(), Health::default());
        metrics.register_scraped(
            "build_info",
            "1, with name and version of the process",
            move || {
                let labels = [("process", name), ("version", env!("CARGO_PKG_VERSION"))];
                vec![ScrapedSeries::new(labels, 1.0)]
            },
        );
        resource_metrics::register(&metrics);
        let controllers = metrics.clone();
        readiness.add(move || controllers.not_synced());
        Self {
            name,
            tasks: JoinSet::new(),
            names: HashMap::new(),
            shutdown: CancellationToken::new(),
            metrics,
            health: Health::default(),
            readiness,
        }
    }

    /// Adds a part that runs until shutdown. If the part ends early, the process ends.
    pub fn part(&mut self, name: &'static str, work: impl Future<Output = ()> + Send + 'static) {
        self.fallible_part(name, async move {
            work.await;
            Ok(())
        });
    }

    /// Adds a part that may end with a reason.
    pub fn fallible_part(
        &mut self,
        name: &'static str,
        work: impl Future<Output = Result<(), String>> + Send + 'static,
    ) {
        let id = self.tasks.spawn(work).id();
        self.names.insert(id, name);
    }

    /// Serves `/healthz`, `/readyz` and `/metrics` in plain HTTP: numbers and no secrets.
    pub fn serve_health(&mut self, address: SocketAddr) {
        let metrics = self.metrics.clone();
        let shutdown = self.shutdown.clone();
        let (health, readiness) = (self.health.clone(), self.readiness.clone());
        self.fallible_part("health endpoint", async move {
            let listener = TcpListener::bind(address)
                .await
                .map_err(|e| format!("cannot listen on {address}: {e}"))?;
            let router = Router::new()
                .route("/healthz", get(move || async move { health.answer() }))
                .route("/readyz", get(move || async move { readiness.answer() }))
                .route("/metrics", get(move || async move { metrics.encode() }));
            axum::serve(listener, router)
                .with_graceful_shutdown(shutdown.cancelled_owned())
                .await
                .map_err(|e| e.to_string())
        });
    }

    /// Runs until a signal or until a part ends; then stops all parts.
    ///
    /// # Errors
    /// Names the part that ended early.
    pub async fn run(mut self) -> Result<(), ProcessError> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let outcome = tokio::select! {
            // The order matters: after a request to stop, the end of a part is not an early end.
            biased;
            _ = terminate.recv() => Ok(()),
            _ = interrupt.recv() => Ok(()),
            () = self.shutdown.cancelled() => Ok(()),
            Some(ended) = self.tasks.join_next_with_id() => Err(self.describe(ended)),
        };
        info!(process = self.name, "stopping");
        self.shutdown.cancel();
        if tokio::time::timeout(STOP_WITHIN, async {
            while self.tasks.join_next().await.is_some() {}
        })
        .await
        .is_err()
        {
            error!(process = self.name, "parts did not stop in time and are dropped");
        }
        self.tasks.shutdown().await;
        outcome
    }

    fn describe(&self, ended: Result<(Id, Outcome), tokio::task::JoinError>) -> ProcessError {
        let (id, why) = match ended {
            Ok((id, Ok(()))) => (id, "it had nothing more to do".to_owned()),
            Ok((id, Err(why))) => (id, why),
            Err(error) => (error.id(), error.to_string()),
        };
        ProcessError::PartEnded {
            part: self.names.get(&id).copied().unwrap_or("a part"),
            why,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn health_fails_while_a_check_does() {
        let (health, stuck) = (Health::default(), Arc::new(AtomicBool::new(false)));
        let seen = Arc::clone(&stuck);
        health.clone().add(|| None);
        health
            .clone()
            .add(move || seen.load(Ordering::SeqCst).then(|| "stuck".to_owned()));
        for (now, code, text) in [(false, 200, "ok"), (true, 500, "stuck"), (false, 200, "ok")] {
            stuck.store(now, Ordering::SeqCst);
            let answer = health.answer();
            assert_eq!((answer.0.as_u16(), answer.1.as_str()), (code, text));
        }
    }

    #[test]
    fn a_process_is_ready_once_its_controllers_are_and_nothing_else_is_awaited() {
        let process = Process::new("a test");
        let answer = || process.readiness.answer();
        assert_eq!(answer().0, StatusCode::OK);
        let election = process.readiness.awaiting("the election has not begun");
        assert_eq!(
            answer(),
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                "the election has not begun".into()
            )
        );
        let controller = process.metrics.begin_sync("shoot");
        drop(election);
        assert!(answer().1.ends_with("shoot"), "{}", answer().1);
        controller.synced();
        assert_eq!(answer().0, StatusCode::OK);
        // A process that is not ready is still healthy: a restart would not help.
        assert_eq!(process.health.answer().0, StatusCode::OK);
    }
}
