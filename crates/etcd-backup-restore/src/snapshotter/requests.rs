//! What the HTTP interface asks of the task, and the way there.

use super::proof::Proof;
use super::relief::Relief;
use super::state::State;
use crate::error::{Class, Error, Result};
use crate::metrics::Metrics;
use crate::snapshot_name::Snapshot;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Requests that wait for their turn; more wait at the sender.
const WAITING: usize = 16;

/// Where an answer goes.
pub(super) type Answer<T> = oneshot::Sender<Result<T>>;

/// Served in turn with what comes due.
pub(super) enum Request {
    /// A full snapshot.
    Full(Answer<Snapshot>),
    /// A delta up to now; `None` where nothing changed.
    Delta(Answer<Option<Snapshot>>),
    /// Room below etcd's quota, of the process itself. In turn with snapshots, since a defragmentation blocks
    /// etcd.
    MakeRoom(Answer<Relief>),
}

/// Served before anything else; what is under way is given up for it.
pub(super) enum Urgent {
    /// The final snapshot.
    Final(Answer<Proof>),
    /// Leave the finished state; tells whether there was one.
    Resume(Answer<bool>),
}

/// The other end.
pub(super) struct Inbox {
    pub(super) requests: mpsc::Receiver<Request>,
    pub(super) urgent: mpsc::Receiver<Urgent>,
}

/// The way to the task for everybody else.
#[derive(Clone)]
pub struct Handle {
    requests: mpsc::Sender<Request>,
    urgent: mpsc::Sender<Urgent>,
    /// What is known now.
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

    /// For a part of the task itself, which must not keep the task from ending with the last handle.
    pub(super) fn weak_requests(&self) -> mpsc::WeakSender<Request> {
        self.requests.downgrade()
    }

    /// One behind which nobody takes snapshots yet.
    #[must_use]
    pub fn idle(prefix: &str, epoch: i64, metrics: Arc<Metrics>) -> Self {
        Self::new(prefix, epoch, metrics).0
    }

    /// Takes a full snapshot.
    pub async fn full(&self) -> Result<Snapshot> {
        ask(&self.requests, Request::Full).await
    }

    /// Stores what changed since the last snapshot.
    pub async fn delta(&self) -> Result<Option<Snapshot>> {
        ask(&self.requests, Request::Delta).await
    }

    /// Takes the final snapshot and proves it.
    pub async fn finish(&self) -> Result<Proof> {
        ask(&self.urgent, Urgent::Final).await
    }

    /// Leaves the finished state; tells whether there was one.
    pub async fn resume(&self) -> Result<bool> {
        ask(&self.urgent, Urgent::Resume).await
    }
}

/// Asks the task for room below the quota. `None` where the task is stopping.
pub(super) async fn make_room(way: &mpsc::WeakSender<Request>) -> Option<Result<Relief>> {
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
