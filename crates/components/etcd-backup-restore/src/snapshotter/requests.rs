//! The requests of the HTTP interface to the task, and their channels.

use super::{proof::Proof, relief::ReliefAttempt, state::State};
use crate::error::{Class, Error, Result};
use crate::metrics::Metrics;
use crate::snapshot_name::Snapshot;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Requests that wait for their turn; further senders wait.
const WAITING: usize = 16;

/// Channel for the answer to a request.
pub(super) type Answer<T> = oneshot::Sender<Result<T>>;

/// Requests that wait for their turn between scheduled snapshots.
pub(super) enum Request {
    /// A full snapshot.
    Full(Answer<Snapshot>),
    /// A delta up to now; `None` without changes.
    Delta(Answer<Option<Snapshot>>),
    /// Room below etcd's quota, requested by the process itself. In turn with snapshots, because a
    /// defragmentation blocks etcd.
    MakeRoom(Answer<ReliefAttempt>),
}

/// Requests that precede everything; running work is dropped for such a request.
pub(super) enum Urgent {
    /// The final snapshot.
    Final(Answer<Proof>),
    /// Leave the finished state; the answer tells whether the task was finished.
    Resume(Answer<bool>),
}

/// The receiving ends of the channels.
pub(super) struct Inbox {
    pub(super) requests: mpsc::Receiver<Request>,
    pub(super) urgent: mpsc::Receiver<Urgent>,
}

/// The sending ends of the channels, with the shared state.
#[derive(Clone)]
pub struct Handle {
    requests: mpsc::Sender<Request>,
    urgent: mpsc::Sender<Urgent>,
    /// Current state of the task.
    pub state: Arc<State>,
    /// Measurements.
    pub metrics: Arc<Metrics>,
    /// Folder of the snapshots in the bucket.
    pub prefix: Arc<str>,
    /// Epoch of the ownership that this process works under.
    pub epoch: i64,
}

impl Handle {
    pub(super) fn new(prefix: &str, epoch: i64, metrics: Arc<Metrics>) -> (Self, Inbox) {
        let (requests, of_requests) = mpsc::channel(WAITING);
        let (urgent, of_urgent) = mpsc::channel(WAITING);
        let handle = Self {
            requests,
            urgent,
            state: Arc::default(),
            metrics,
            prefix: prefix.into(),
            epoch,
        };
        let inbox = Inbox {
            requests: of_requests,
            urgent: of_urgent,
        };
        (handle, inbox)
    }

    /// For a part of the task itself: a strong sender would keep the task running after the last handle.
    pub(super) fn weak_requests(&self) -> mpsc::WeakSender<Request> {
        self.requests.downgrade()
    }

    /// A handle without a running snapshotter.
    #[must_use]
    pub fn idle(prefix: &str, epoch: i64, metrics: Arc<Metrics>) -> Self {
        Self::new(prefix, epoch, metrics).0
    }

    /// Takes a full snapshot.
    pub async fn full(&self) -> Result<Snapshot> {
        ask(&self.requests, Request::Full).await
    }

    /// Stores the changes since the last snapshot.
    pub async fn delta(&self) -> Result<Option<Snapshot>> {
        ask(&self.requests, Request::Delta).await
    }

    /// Takes the final snapshot and verifies the stored object.
    pub async fn finish(&self) -> Result<Proof> {
        ask(&self.urgent, Urgent::Final).await
    }

    /// Leaves the finished state; returns whether the task was finished.
    pub async fn resume(&self) -> Result<bool> {
        ask(&self.urgent, Urgent::Resume).await
    }
}

/// Asks the task for room below the quota. `None` where the task is stopping.
pub(super) async fn make_room(way: &mpsc::WeakSender<Request>) -> Option<Result<ReliefAttempt>> {
    let way = way.upgrade()?;
    Some(ask(&way, Request::MakeRoom).await)
}

async fn ask<R, T>(way: &mpsc::Sender<R>, request: impl FnOnce(Answer<T>) -> R) -> Result<T> {
    let stopping = || {
        Error::new(
            Class::Stopping,
            "the process is stopping; ask again when it is back",
        )
    };
    let (answer, answered) = oneshot::channel();
    way.send(request(answer)).await.map_err(|_| stopping())?;
    match answered.await {
        Ok(answer) => answer,
        Err(_) if way.is_closed() => Err(stopping()),
        Err(_) => Err(Error::new(
            Class::Interrupted,
            "a request for the final snapshot or to resume came first; ask again",
        )),
    }
}
