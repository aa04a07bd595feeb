//! Settings and state that the parts of the task share.

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
    /// The store for the snapshots, opened for the ownership epoch of this process.
    pub store: Arc<Store>,
    /// Compression of new objects.
    pub compression: Compression,
    /// Schedule of full snapshots.
    pub schedule: Schedule,
    /// At start a full snapshot is taken if the newest is older than this time.
    pub full_window: Duration,
    /// Time between deltas; zero for none.
    pub delta_period: Duration,
    /// Bytes of events that are collected at most before a delta is stored.
    pub delta_limit: usize,
    /// Retention policy of the garbage collection.
    pub policy: Policy,
    /// Chains kept by `LimitBased`.
    pub max_backups: usize,
    /// Time between collections.
    pub gc_period: Duration,
}

/// The part of the task whose work an urgent request drops.
pub(super) struct Worker {
    pub(super) settings: Settings,
    pub(super) requests: mpsc::Receiver<Request>,
    pub(super) state: Arc<State>,
    pub(super) metrics: Arc<Metrics>,
    /// Why the next session begins with a full snapshot, regardless of the store's content.
    pub(super) begin_with: Option<String>,
    /// End of the last full snapshot of this process, and how long it took.
    pub(super) last_full: Option<(Instant, Duration)>,
    /// Whether this process has read the final snapshot back itself.
    pub(super) read_back_by_this_process: bool,
    /// Whether this process has defragmented etcd, so that etcd reports the bytes in use exactly unless
    /// history was compacted since.
    pub(super) defragmented: bool,
}
