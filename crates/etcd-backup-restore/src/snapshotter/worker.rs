//! What the parts of the task share.

use super::requests::Request;
use super::state::State;
use crate::compression::Compression;
use crate::etcd::EtcdConfig;
use crate::garbage::Policy;
use crate::metrics::Metrics;
use crate::schedule::Schedule;
use crate::store::Store;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How snapshots are taken.
pub struct Settings {
    /// etcd.
    pub etcd: EtcdConfig,
    /// Where they go, seen in the ownership epoch of this process.
    pub store: Arc<Store>,
    /// Packing of new objects.
    pub compression: Compression,
    /// When full ones are due.
    pub schedule: Schedule,
    /// A full one is taken at start where the newest is older than this.
    pub full_window: Duration,
    /// Time between deltas; zero for none.
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

/// The part of the task that is dropped in the middle of its work for what is urgent.
pub(super) struct Worker {
    pub(super) settings: Settings,
    pub(super) requests: mpsc::Receiver<Request>,
    pub(super) state: Arc<State>,
    pub(super) metrics: Arc<Metrics>,
    /// Why the next session begins with a full snapshot, whatever the store holds.
    pub(super) begin_with: Option<String>,
    /// End of the last full snapshot of this process, and how long it took.
    pub(super) last_full: Option<(Instant, Duration)>,
    /// Whether this process has read the final snapshot back itself.
    pub(super) proven: bool,
    /// Whether this process has defragmented etcd, so that etcd reports the bytes in use exactly unless
    /// history was compacted since.
    pub(super) defragmented: bool,
}
