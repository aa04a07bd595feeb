//! `follow`: keeps an etcd equal to a source etcd, revision by revision.
//!
//! The local etcd begins with snapshots of the source (`initialize`). Then each revision of the source
//! becomes one transaction at the local etcd. Keys, values, versions, create and mod revisions and the
//! assignment of leases are equal. So a client of the Kubernetes API can continue at the local etcd with a
//! resourceVersion of the source.
//!
//! | file | content |
//! |---|---|
//! | `source` | reads the history, from deltas or from a watch; `scratch`: a temporary file |
//! | `revision_watch` | a watch of all keys, as complete revisions |
//! | `window` | the transactions under way, in an order that etcd cannot change |
//! | `requests` | the transactions; `traces`: conditions on a revision |
//! | `apply` | applies revisions, and compares each with the watch of the local etcd |
//! | `digest` | the running digest over a history |
//! | `history_check` | etcd's own hash over the history before the digest begins |
//! | `refusals` | refusals of the local etcd that no repetition helps against |
//! | `leases`, `maintenance` | leases that must not end by themselves, and the compaction |
//! | `progress` | the state of the follower; `serve` shows the state; `flags`: the command line |
//!
//! The follower is the only client that may write to the local etcd. A difference ends the follower with the
//! class `EtcdDiverged`: the local etcd must not be used then.

mod apply;
mod digest;
mod flags;
mod history_check;
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
use crate::etcd::{EtcdConfig, Space};
use crate::store::Store;
use history_check::HistoryCheck;
use leases::Leases;
use maintenance::Maintenance;
use progress::SessionBegin;
use refusals::{explain, is_no_space};
use sidecar_protocol::FollowStatus;
use source::{Sink, Source, connect, is_final};
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Revisions between the reader and the window; the window bounds the bytes.
const PASSED_ON: usize = 8;
/// Pause after the connection to the local etcd was lost. Longer than etcd's own timeout of a request (5 s
/// and two elections of 1 s): afterwards no transaction of the lost connection is under way.
const SETTLE: Duration = Duration::from_secs(8);
/// Between two barriers at the begin. etcd may have received a transaction of a killed process, and not have
/// proposed the transaction before the first barrier.
const BARRIER_PAUSE: Duration = Duration::from_millis(200);
/// Barriers with a different revision each, after which a different client writes to the local etcd.
const MOST_BARRIERS: usize = 50;

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
    /// The largest database of the source that etcd hashes, in bytes.
    pub max_hashed: u64,
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
            let Err(error) = Box::pin(self.session()).await else {
                return Ok(self.progress.status());
            };
            self.progress.interrupted(&error);
            if error.class != Class::Etcd {
                return Err(error);
            }
            tracing::warn!(%error, "the local etcd does not answer; following again");
            sleep(SETTLE).await;
            if is_no_space(&error)
                && let Err(error) = self.make_room().await
            {
                self.progress.interrupted(&error);
                if is_final(error.class) {
                    return Err(error);
                }
                tracing::warn!(class = error.class.as_str(), %error, "cannot make room in the local etcd");
            }
        }
    }

    /// Follows with one connection to the local etcd.
    async fn session(&self) -> Result<()> {
        let local = self.local.connect().await?;
        let settled = settled_revision(|| local.barrier()).await;
        let reached = settled.map_err(|error| explain(error, None))?;
        let begin = self.progress.begin(reached)?;
        if let Some(until) = self.until.filter(|until| reached > *until) {
            return Err(beyond(reached, until));
        }
        let leases = Leases::read(&local, &self.progress).await?;
        let maintenance = Maintenance::new(&self.source, &leases, &self.progress, self.maintenance_period);
        let stop = CancellationToken::new();
        let following = async {
            let followed = self.apply_and_prove(&leases, reached, begin).await;
            stop.cancel();
            followed
        };
        // A revocation under way is completed before the last comparison.
        let (followed, ()) = tokio::join!(following, maintenance.run(&stop));
        followed?;
        self.progress.leases_complete(maintenance.end().await);
        match (self.until, local.barrier().await?) {
            (Some(until), last) if last > until => Err(changed_after_proof(until, last)),
            _ => Ok(()),
        }
    }

    /// Applies the source's revisions until the last revision is proved.
    async fn apply_and_prove(&self, leases: &Leases<'_>, reached: i64, begin: SessionBegin) -> Result<()> {
        let (local, progress) = (leases.etcd(), &self.progress);
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
            leases,
            progress,
            until: self.until,
            applied: reached,
            reached: begin.proved,
            digest: begin.digest,
        };
        let check = HistoryCheck {
            source: &self.source,
            local,
            progress,
            max_hashed: self.max_hashed,
        };
        tokio::select! {
            applied = apply::apply(local, (reached, self.until), self.limits, revisions, progress) => applied,
            proved = apply::prove(local, (begin.proved, reached), progress) => proved.map(|never| match never {}),
            read = source.read(sink) => read.map(|never| match never {}),
            kept = leases.keep() => kept.map(|never| match never {}),
            checked = check.run() => checked.map(|never| match never {}),
        }
    }

    /// Makes room in a local etcd that refuses writes: compacts like the source, gives the pages back and
    /// disarms alarm NOSPACE.
    async fn make_room(&self) -> Result<()> {
        let local = self.local.connect().await?;
        let source = connect(&self.source, &self.progress).await?;
        let revision = source.oldest_revision(1).await?.min(self.progress.revision());
        if revision > 1 {
            local.compact(revision).await?;
        }
        local.defragment().await?;
        let space = local.space().await?;
        // An etcd before 3.6 does not report its quota.
        if space.quota > 0 && !space.has_room() {
            return Err(full(space));
        }
        local.disarm_no_space().await?;
        tracing::info!(
            revision,
            size = space.used,
            quota = space.quota,
            "made room in the local etcd"
        );
        Ok(())
    }
}

/// The revision of an etcd in which no transaction of an earlier connection is under way.
async fn settled_revision<F>(mut barrier: impl FnMut() -> F) -> Result<i64>
where
    F: Future<Output = Result<i64>>,
{
    let mut revision = barrier().await?;
    for _ in 0..MOST_BARRIERS {
        sleep(BARRIER_PAUSE).await;
        let next = barrier().await?;
        if next == revision {
            return Ok(revision);
        }
        revision = next;
    }
    let sentence = format!(
        "the local etcd goes on to revision {revision} without a follower, so a different client writes to the local \
         etcd; remove the data directory and prepare the etcd again"
    );
    Err(Error::new(Class::Diverged, sentence))
}

fn full(space: Space) -> Error {
    let sentence = format!(
        "the local etcd is full: after a compaction and a defragmentation its database has {} of {} bytes; raise \
         --quota-backend-bytes of the local etcd",
        space.used, space.quota
    );
    Error::new(Class::Configuration, sentence)
}

fn changed_after_proof(until: i64, last: i64) -> Error {
    let sentence = format!(
        "the local etcd is at revision {last}, and was proved up to --until-revision={until}; remove the data directory \
         and prepare the etcd again"
    );
    Error::new(Class::Diverged, sentence)
}

fn beyond(from: i64, until: i64) -> Error {
    let sentence = format!("the local etcd is at revision {from} already, beyond --until-revision={until}");
    Error::new(Class::Configuration, sentence)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    async fn settled(revisions: &[i64]) -> Result<i64> {
        let mut revisions = revisions.iter().copied();
        settled_revision(|| std::future::ready(Ok(revisions.next().unwrap()))).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_begins_once_no_former_transaction_is_under_way() {
        assert_eq!(settled(&[4, 4]).await.unwrap(), 4);
        assert_eq!(settled(&[4, 6, 7, 7]).await.unwrap(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_does_not_begin_beside_a_different_client() {
        let revisions = (1_i64..100).collect::<Vec<_>>();
        assert_eq!(settled(&revisions).await.unwrap_err().class, Class::Diverged);
    }
}
