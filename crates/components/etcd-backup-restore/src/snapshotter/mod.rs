//! Takes the snapshots, never two at a time.
//!
//! A single task owns all state, so that a scheduled, a requested and the final snapshot can never overlap.
//! Requests come through two channels. The requests of the first channel wait for their turn. The urgent
//! requests (final snapshot, resume) precede everything: the running session is dropped and restarted. That
//! is safe, because each session reads the content of the store at its start. An object appears as a whole or
//! not at all. An error ends the session too, and the next session begins after a pause. After a final
//! snapshot the task writes no more snapshots until a resume request. After a seal the task takes only the
//! final snapshot (`sealed`).
//!
//! | file | content |
//! |---|---|
//! | `plan` | the first step of a session |
//! | `session` | a session; `worker`: the settings and the state that all parts share |
//! | `changes` | the changes since the last snapshot; `deltas` stores the changes |
//! | `finale` | the final snapshot; `proof`: the proof in the store |
//! | `sealed` | the work after the seal |
//! | `collector` | when garbage is collected |
//! | `space` | the room below the quota of etcd; `room` makes room, `relief` reports the attempt |
//! | `requests` | the requests of the HTTP interface; `state`: the shown state |

mod changes;
mod collector;
mod deltas;
mod finale;
mod plan;
mod proof;
mod relief;
mod requests;
mod room;
mod sealed;
mod session;
mod space;
mod state;
mod worker;

pub use plan::{Plan, plan};
pub use proof::Proof;
pub(crate) use proof::fingerprint;
pub use requests::Handle;
pub use sealed::BEAT;
pub use state::{Latest, State};
pub use worker::Settings;

use crate::metrics::Metrics;
use collector::Collector;
use requests::Urgent;
use session::NextSession;
use space::SpaceWatch;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use worker::Worker;

/// Pause after a failed session: the first, doubled up to the last. The last pause must be shorter than a
/// caller waits for the final snapshot. Then a repaired bucket is noticed while the caller still waits.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));

/// The task.
pub struct Snapshotter {
    worker: Worker,
    collector: Collector,
    space: SpaceWatch,
    urgent: mpsc::Receiver<Urgent>,
}

impl Snapshotter {
    /// The task, not yet running, and its handle.
    #[must_use]
    pub fn new(settings: Settings) -> (Self, Handle) {
        Self::measured(settings, Arc::default())
    }

    /// Like [`Self::new`], with metrics that are shared in the process.
    #[must_use]
    pub fn measured(settings: Settings, metrics: Arc<Metrics>) -> (Self, Handle) {
        let (handle, inbox) = Handle::new(&settings.store.prefix(), settings.store.epoch(), metrics);
        let collector = Collector::new(&settings, handle.state.clone(), handle.metrics.clone());
        let etcd = settings.etcd.clone();
        let space = SpaceWatch::new(etcd, &handle);
        let worker = Worker {
            settings,
            requests: inbox.requests,
            state: handle.state.clone(),
            metrics: handle.metrics.clone(),
            begin_with: None,
            last_full: None,
            read_back_by_this_process: false,
            defragmented: false,
        };
        let snapshotter = Self {
            worker,
            collector,
            space,
            urgent: inbox.urgent,
        };
        (snapshotter, handle)
    }

    /// Runs until stopped, or until every handle is dropped. The collected changes are stored before the end.
    pub async fn run(mut self, stop: CancellationToken) {
        loop {
            let urgent = tokio::select! {
                biased;
                urgent = self.urgent.recv() => urgent,
                () = self.worker.run(&stop) => None,
                () = self.collector.run() => None,
                () = self.space.run() => None,
            };
            match urgent {
                Some(urgent) => self.worker.serve_urgent(urgent).await,
                None => return,
            }
        }
    }
}

impl Worker {
    /// Session after session.
    async fn run(&mut self, stop: &CancellationToken) {
        let mut pause = PAUSES.0;
        loop {
            let until = match self.session(stop).await {
                Ok(NextSession::Now) => {
                    pause = PAUSES.0;
                    continue;
                }
                Ok(NextSession::At(until)) => until,
                Ok(NextSession::Never) => return,
                Err(failure) => {
                    tracing::warn!(class = failure.class.as_str(), error = %failure, "snapshots are interrupted");
                    self.state.failed(&failure);
                    let until = Instant::now() + pause;
                    pause = (pause * 2).min(PAUSES.1);
                    until
                }
            };
            if !self.rest(until, stop).await {
                return;
            }
        }
    }

    /// Serves requests that need no session; returns whether another session follows.
    async fn rest(&mut self, until: Instant, stop: &CancellationToken) -> bool {
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return false,
                () = sleep_until(until) => return true,
                request = self.requests.recv() => match request {
                    None => return false,
                    Some(request) => if self.serve_without_watch(request).await { return true },
                },
            }
        }
    }
}
