//! Takes the snapshots, one at a time.
//!
//! One task owns everything: requests come through a channel, so that a scheduled, a requested and the final snapshot
//! can never overlap. What the store holds is read from the store at each (re)start of a session, never remembered;
//! an error ends the session, the next one begins after a pause. After a final snapshot nothing is written any more
//! until the process is started again.

mod changes;
mod plan;
mod session;
mod state;

pub use plan::{Plan, plan};
pub use state::{Latest, Phase, State};

use crate::compression::Compression;
use crate::error::{Class, Error, Result};
use crate::etcd::EtcdConfig;
use crate::garbage::Policy;
use crate::metrics::Metrics;
use crate::schedule::Schedule;
use crate::snapshot_name::Snapshot;
use crate::store::Store;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Pause after a failed session: the first, doubled up to the last. The last must be shorter than the time a caller
/// of the final snapshot waits, so that a repaired bucket is noticed while it still asks.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(15));

/// How snapshots are taken.
pub struct Settings {
    /// etcd.
    pub etcd: EtcdConfig,
    /// Where they go.
    pub store: Store,
    /// Packing of new objects.
    pub compression: Compression,
    /// When full ones are due.
    pub schedule: Schedule,
    /// A full one is taken at start where the newest is older than this.
    pub full_window: Duration,
    /// Time between deltas; below a second there are none.
    pub delta_period: Duration,
    /// Bytes of events that are collected at most before a delta is stored.
    pub delta_limit: usize,
    /// What garbage collection keeps.
    pub policy: Policy,
    /// Chains kept by `LimitBased`.
    pub max_backups: usize,
    /// Time between collections.
    pub gc_period: Duration,
}

/// What the HTTP interface asks for.
pub enum Request {
    /// A full snapshot, final or not.
    Full(bool, oneshot::Sender<Result<Snapshot>>),
    /// A delta up to now; `None` where nothing changed.
    Delta(oneshot::Sender<Result<Option<Snapshot>>>),
}

/// The way to the task for everybody else.
#[derive(Clone)]
pub struct Handle {
    requests: mpsc::Sender<Request>,
    /// What is known now.
    pub state: Arc<State>,
    /// Measurements.
    pub metrics: Arc<Metrics>,
    /// Folder of the snapshots in the bucket.
    pub prefix: Arc<str>,
}

impl Handle {
    async fn ask<T>(&self, request: impl FnOnce(oneshot::Sender<Result<T>>) -> Request) -> Result<T> {
        let (answer, answered) = oneshot::channel();
        let gone = || {
            Error::new(
                Class::Stopping,
                "the process is stopping; ask again when it is back",
            )
        };
        self.requests.send(request(answer)).await.map_err(|_| gone())?;
        answered.await.map_err(|_| gone())?
    }

    /// Takes a full snapshot.
    pub async fn full(&self, is_final: bool) -> Result<Snapshot> {
        self.ask(|answer| Request::Full(is_final, answer)).await
    }

    /// Stores what changed since the last snapshot.
    pub async fn delta(&self) -> Result<Option<Snapshot>> {
        self.ask(Request::Delta).await
    }
}

/// The task.
pub struct Snapshotter {
    settings: Settings,
    requests: mpsc::Receiver<Request>,
    state: Arc<State>,
    metrics: Arc<Metrics>,
}

impl Snapshotter {
    /// The task, not yet running, and the way to it.
    #[must_use]
    pub fn new(settings: Settings) -> (Self, Handle) {
        let (sender, requests) = mpsc::channel(16);
        let (state, metrics) = (Arc::<State>::default(), Arc::<Metrics>::default());
        let prefix = settings.store.prefix().into();
        let handle = Handle {
            requests: sender,
            state: state.clone(),
            metrics: metrics.clone(),
            prefix,
        };
        (
            Self {
                settings,
                requests,
                state,
                metrics,
            },
            handle,
        )
    }

    /// Runs until every handle is gone.
    pub async fn run(mut self) {
        let mut pause = PAUSES.0;
        loop {
            let failure = match self.session().await {
                Ok(session::End::Again) => {
                    pause = PAUSES.0;
                    continue;
                }
                Ok(session::End::Stopped) => return,
                Err(e) => e,
            };
            tracing::warn!(class = failure.class.word(), error = %failure, "snapshots are interrupted");
            self.state.failed(&failure);
            let until = tokio::time::Instant::now() + pause;
            pause = (pause * 2).min(PAUSES.1);
            loop {
                tokio::select! {
                    () = tokio::time::sleep_until(until) => break,
                    request = self.requests.recv() => match request {
                        None => return,
                        Some(request) => if self.serve_without_watch(request).await { break },
                    },
                }
            }
        }
    }
}
