//! `follow`: keeps an etcd equal to a source etcd, revision by revision.
//!
//! The local etcd begins with snapshots of the source (`initialize`). Then each revision of the source
//! becomes one transaction at the local etcd. Keys, values, versions, create and mod revisions and the
//! assignment of leases are equal. So a client of the Kubernetes API can continue at the local etcd with a
//! resourceVersion of the source.
//!
//! - `source`: reads the history, from deltas or from a watch.
//! - `window`: sends many transactions at once, in an order that etcd cannot change.
//! - `progress`: a digest over the source's history, compared with the digest of the local etcd's own watch
//!   at each revision.
//! - `leases`, `maintenance`: leases that must not end by themselves, and the compaction.
//!
//! The follower is the only client that may write to the local etcd. A difference ends the follower with the
//! class `EtcdDiverged`: the local etcd must not be used then.

mod apply;
mod digest;
mod flags;
mod leases;
mod maintenance;
mod progress;
mod refusals;
mod requests;
mod revision_watch;
mod scratch;
mod serve;
mod source;
mod traces;
mod window;

pub use flags::FollowArgs;
pub use progress::FollowProgress;
pub use serve::serve_status;
pub use window::WindowLimits;

use crate::error::{Class, Error, Result};
use crate::etcd::EtcdConfig;
use crate::store::Store;
use leases::Leases;
use maintenance::Maintenance;
use sidecar_protocol::FollowStatus;
use source::{Sink, Source};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// Revisions between the reader and the window; the window bounds the bytes.
const PASSED_ON: usize = 8;
/// Pause after the connection to the local etcd was lost. Longer than etcd's own timeout of a request (5 s
/// and two elections of 1 s): afterwards no transaction of the lost connection is under way.
const SETTLE: Duration = Duration::from_secs(8);

/// The parameters of a follower.
pub struct Follow {
    /// The etcd that follows.
    pub local: EtcdConfig,
    /// The etcd that is followed.
    pub source: EtcdConfig,
    /// The snapshots of the source, in its ownership epoch.
    pub store: Store,
    /// Folder in which a delta is checked before its changes are used.
    pub scratch_dir: PathBuf,
    /// Bounds of the transactions under way and of memory.
    pub limits: WindowLimits,
    /// The number of revisions that the follower reads through a watch at most; more are read from deltas.
    pub max_watched: i64,
    /// Longest wait for a delta that continues the local etcd.
    pub delta_timeout: Duration,
    /// Time between two checks of compaction and leases.
    pub maintenance_period: Duration,
    /// The revision at which the follower ends.
    pub until: Option<i64>,
    /// A view for readers.
    pub progress: FollowProgress,
}

impl Follow {
    /// Follows until the revision `until`, or for ever. An error needs a new data directory or other flags.
    pub async fn run(&self) -> Result<FollowStatus> {
        loop {
            let Err(error) = self.session().await else {
                return Ok(self.progress.status());
            };
            self.progress.interrupted(&error);
            if error.class != Class::Etcd {
                return Err(error);
            }
            tracing::warn!(%error, "the local etcd does not answer; following again");
            sleep(SETTLE).await;
        }
    }

    /// Follows with one connection to the local etcd.
    async fn session(&self) -> Result<()> {
        let local = self.local.connect().await?;
        let from = local.revision().await?;
        self.progress.begin(from);
        match self.until {
            Some(until) if from == until => return Ok(()),
            Some(until) if from > until => return Err(beyond(from, until)),
            _ => {}
        }
        let progress = &self.progress;
        let leases = Leases::read(&local, progress).await?;
        let (sender, revisions) = mpsc::channel(PASSED_ON);
        let source = Source {
            etcd: &self.source,
            store: &self.store,
            scratch: &self.scratch_dir,
            max_watched: self.max_watched,
            delta_timeout: self.delta_timeout,
        };
        let sink = Sink {
            sender,
            leases: &leases,
            progress,
            until: self.until,
            reached: from,
            digest: digest::HistoryDigest::default(),
            is_begin_checked: from <= 1,
        };
        let maintenance = Maintenance {
            source: &self.source,
            local: &local,
            leases: &leases,
            progress,
            period: self.maintenance_period,
        };
        let applying = apply::apply(&local, (from, self.until), self.limits, revisions, progress);
        let followed = tokio::select! {
            applied = applying => applied,
            proved = apply::prove(&local, from, progress) => proved.map(|never| match never {}),
            read = source.read(sink) => read.map(|never| match never {}),
            kept = leases.keep() => kept.map(|never| match never {}),
            never = maintenance.run() => match never {},
        };
        followed?;
        maintenance.end().await;
        Ok(())
    }
}

fn beyond(from: i64, until: i64) -> Error {
    let sentence = format!("the local etcd is at revision {from} already, beyond --until-revision={until}");
    Error::new(Class::Configuration, sentence)
}
