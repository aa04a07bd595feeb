//! The phase of the task and the content of the store, for the HTTP interface.

use super::proof::Proof;
use crate::error::Error;
use crate::etcd::Space;
use crate::snapshot_name::{Kind, Snapshot};
use sidecar_protocol::{ReportedRelief, SnapshotterPhase};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use tokio::sync::Notify;

/// The end of the store.
#[derive(Clone, Debug, Default)]
pub struct Latest {
    /// Newest full snapshot.
    pub full: Option<Snapshot>,
    /// Deltas after the full snapshot.
    pub deltas: Vec<Snapshot>,
}

impl Latest {
    /// The last revision in the store; 0 without a snapshot.
    #[must_use]
    pub fn last_revision(&self) -> i64 {
        let newest = self.deltas.last().or(self.full.as_ref());
        newest.map_or(0, |snapshot| snapshot.last_revision)
    }
}

#[derive(Default)]
struct Inner {
    phase: SnapshotterPhase,
    latest: Latest,
    error: Option<String>,
    /// Of the final snapshot, while the phase is `Finished`.
    proof: Option<Proof>,
    /// Revision of etcd at which the epoch was sealed, once the bucket holds the note.
    sealed_revision: Option<i64>,
    /// Room of etcd at the last check.
    space: Option<Space>,
    /// The last attempt to make room for etcd, while alarm NOSPACE is raised or since the attempt disarmed
    /// the alarm.
    relief: Option<ReportedRelief>,
}

/// Shared between the task, which writes, and the HTTP interface, which reads.
#[derive(Default)]
pub struct State {
    inner: Mutex<Inner>,
    finished: Notify,
}

impl State {
    fn with<T>(&self, look: impl FnOnce(&mut Inner) -> T) -> T {
        look(&mut self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Phase and the last error, if the error persists.
    #[must_use]
    pub fn health(&self) -> (SnapshotterPhase, Option<String>) {
        self.with(|inner| (inner.phase, inner.error.clone()))
    }

    /// The end of the store, as last seen or written.
    #[must_use]
    pub fn latest(&self) -> Latest {
        self.with(|inner| inner.latest.clone())
    }

    /// Whether the final snapshot is the last that is taken.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.with(|inner| inner.phase == SnapshotterPhase::Finished)
    }

    /// Until the final snapshot was taken.
    pub async fn until_finished(&self) {
        loop {
            let mut told = pin!(self.finished.notified());
            // From here on the notification cannot be missed.
            told.as_mut().enable();
            if self.is_finished() {
                return;
            }
            told.await;
        }
    }

    /// The proof of the final snapshot, while the process is finished.
    #[must_use]
    pub fn proof(&self) -> Option<Proof> {
        self.with(|inner| inner.proof.clone())
    }

    /// Revision of etcd at which the epoch was sealed. No client has read a later revision.
    #[must_use]
    pub fn sealed_revision(&self) -> Option<i64> {
        self.with(|inner| inner.sealed_revision)
    }

    pub(super) fn note_sealed_revision(&self, revision: i64) {
        self.with(|inner| inner.sealed_revision = Some(revision));
    }

    /// Room of etcd at the last check; none before etcd has answered.
    #[must_use]
    pub fn space(&self) -> Option<Space> {
        self.with(|inner| inner.space)
    }

    pub(super) fn note_space(&self, space: Space) {
        self.with(|inner| inner.space = Some(space));
    }

    /// The last attempt to make room for etcd.
    #[must_use]
    pub fn relief(&self) -> Option<ReportedRelief> {
        self.with(|inner| inner.relief.clone())
    }

    pub(super) fn note_relief(&self, relief: ReportedRelief) {
        self.with(|inner| inner.relief = Some(relief));
    }

    pub(super) fn active(&self) {
        self.with(|inner| {
            inner.error = None;
            if inner.phase != SnapshotterPhase::Finished {
                inner.phase = SnapshotterPhase::Active;
            }
        });
    }

    /// Records an error that blocks the current work.
    pub(crate) fn failed(&self, error: &Error) {
        self.with(|inner| {
            inner.error = Some(error.to_string());
            if inner.phase != SnapshotterPhase::Finished {
                inner.phase = SnapshotterPhase::Interrupted;
            }
        });
    }

    pub(super) fn finished(&self, proof: Proof) {
        self.with(|inner| {
            inner.phase = SnapshotterPhase::Finished;
            inner.error = None;
            inner.proof = Some(proof);
        });
        self.finished.notify_waiters();
    }

    pub(super) fn resumed(&self) {
        self.with(|inner| {
            inner.phase = SnapshotterPhase::Starting;
            inner.proof = None;
        });
    }

    pub(super) fn set_latest(&self, latest: Latest) {
        self.with(|inner| inner.latest = latest);
    }

    pub(super) fn stored(&self, snapshot: &Snapshot) {
        self.with(|inner| match snapshot.kind {
            Kind::Full => {
                inner.latest = Latest {
                    full: Some(snapshot.clone()),
                    deltas: Vec::new(),
                }
            }
            Kind::Delta => inner.latest.deltas.push(snapshot.clone()),
        });
    }
}
