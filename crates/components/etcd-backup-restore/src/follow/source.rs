//! Reads the history of the source: from its delta snapshots while the follower is far behind, and from a
//! watch of its etcd otherwise.
//!
//! A watch that begins far in the past makes the source read the whole range at once under a lock. So a watch
//! begins at most `max_watched` revisions before the newest revision.

use super::digest::HistoryDigest;
use super::leases::Leases;
use super::progress::FollowProgress;
use super::refusals::is_no_space;
use super::revision_watch::RevisionWatch;
use super::scratch::ScratchFile;
use crate::chain;
use crate::delta::{Entry, open_entries, read_entries};
use crate::error::{Class, Error, Result};
use crate::etcd::{Etcd, EtcdConfig};
use crate::revisions::{Change, Group, Grouping};
use crate::snapshot_name::Snapshot;
use crate::store::{Store, corrupt};
use futures::future::try_join;
use sidecar_protocol::FollowPhase;
use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::{self, Sender};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

/// Between two attempts to read from the source.
const SHORTEST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Between two looks for a further delta.
const DELTA_POLL_INTERVAL: Duration = Duration::from_secs(2);
/// Between two questions for the revision of the source.
const REVISION_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Timeout of the changes of a revision, which a compaction may have removed.
const HISTORY_CHECK: Duration = Duration::from_secs(5);
/// Changes of a delta that were read and not taken yet.
const ENTRIES: usize = 16;

/// The source.
pub(super) struct Source<'a> {
    pub(super) etcd: &'a EtcdConfig,
    pub(super) store: &'a Store,
    pub(super) scratch: &'a Path,
    /// The number of revisions that are read through a watch at most.
    pub(super) max_watched: i64,
    /// Longest wait for a delta that continues the local etcd.
    pub(super) delta_timeout: Duration,
}

/// Where the history goes.
pub(super) struct Sink<'a> {
    pub(super) sender: Sender<Group<Change>>,
    pub(super) leases: &'a Leases<'a>,
    pub(super) progress: &'a FollowProgress,
    /// The last revision to pass on.
    pub(super) until: Option<i64>,
    /// The local etcd's revision when the session began.
    pub(super) applied: i64,
    /// The last revision that was passed on.
    pub(super) reached: i64,
    /// Of all revisions that were passed on since the follower began.
    pub(super) digest: HistoryDigest,
}

impl Sink<'_> {
    /// Passes a revision on. Each change has the TTL of its lease, or 0 where the TTL is unknown.
    async fn push(&mut self, source: &Etcd, (number, changes): Group<(Change, i64)>) -> Result<()> {
        if self.until.is_some_and(|until| number > until) {
            return std::future::pending().await;
        }
        for (change, ttl) in &changes {
            if let Change::Put(kv) = change {
                self.leases.ensure(kv.lease, *ttl, source).await?;
            }
        }
        let changes: Vec<_> = changes.into_iter().map(|(change, _)| change).collect();
        // Without a receiver the session has ended.
        let Ok(place) = self.sender.reserve().await else {
            return std::future::pending().await;
        };
        self.digest.add(number, &changes);
        self.progress.expect(number, self.digest);
        self.reached = number;
        place.send((number, changes));
        Ok(())
    }
}

impl Source<'_> {
    /// Reads for ever. Ends with an error that a further attempt does not help against.
    pub(super) async fn read(&self, mut sink: Sink<'_>) -> Result<Infallible> {
        let mut pause = SHORTEST_PAUSE;
        let mut is_overtaken = false;
        loop {
            let before = sink.reached;
            let Err(error) = self.session(&mut sink, is_overtaken).await;
            is_overtaken = error.class == Class::Compacted && !is_overtaken;
            if is_overtaken {
                tracing::warn!(%error, reached = sink.reached, "the source was compacted; going on from its deltas");
                continue;
            }
            // A lease that a full local etcd refuses needs a new session.
            if is_final(error.class) || is_no_space(&error) {
                return Err(error);
            }
            tracing::warn!(class = error.class.as_str(), %error, "cannot read from the source");
            sink.progress.interrupted(&error);
            pause = if sink.reached > before {
                SHORTEST_PAUSE
            } else {
                (pause * 2).min(LONGEST_PAUSE)
            };
            sleep(pause).await;
        }
    }

    async fn session(&self, sink: &mut Sink<'_>, is_overtaken: bool) -> Result<Infallible> {
        let etcd = connect(self.etcd, sink.progress).await?;
        check_history(&etcd, sink).await?;
        self.catch_up(&etcd, sink, is_overtaken).await?;
        let mut watch = RevisionWatch::after(&etcd, sink.reached).await?;
        sink.progress.phase(FollowPhase::Following);
        let mut polls = interval(REVISION_POLL_INTERVAL);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let watched = tokio::select! {
                watched = watch.next() => watched?,
                _ = polls.tick() => {
                    sink.progress.source_at(etcd.revision().await?);
                    continue;
                }
            };
            sink.progress.source_at(watched.header);
            for (number, changes) in watched.revisions {
                let changes = changes.into_iter().map(|change| (change, 0)).collect();
                sink.push(&etcd, (number, changes)).await?;
            }
        }
    }

    /// Reads deltas until a watch from the reached revision on is short enough.
    async fn catch_up(&self, etcd: &Etcd, sink: &mut Sink<'_>, is_overtaken: bool) -> Result<()> {
        let mut needs_delta = is_overtaken;
        let mut deadline = Instant::now() + self.delta_timeout;
        loop {
            let newest = newest_revision(etcd, sink).await?;
            if newest - sink.reached <= self.max_watched && !needs_delta {
                return Ok(());
            }
            sink.progress.phase(FollowPhase::CatchingUp);
            let (deltas, hole) = chain::deltas_after(sink.reached, &self.store.list().await?);
            for delta in &deltas {
                self.read_delta(delta, etcd, sink).await?;
            }
            if !deltas.is_empty() {
                needs_delta = false;
                deadline = Instant::now() + self.delta_timeout;
            } else if hole.is_some() || Instant::now() >= deadline {
                return Err(self.no_delta(sink.reached, newest, hole));
            } else {
                sleep(DELTA_POLL_INTERVAL).await;
            }
        }
    }

    fn no_delta(&self, reached: i64, newest: i64, hole: Option<Error>) -> Error {
        let hole = hole.map_or_else(String::new, |hole| format!(" ({})", hole.message));
        let sentence = format!(
            "the source is at revision {newest}, and no delta snapshot below {} continues revision {reached} of the local \
             etcd{hole}; remove the data directory, restore the newest snapshots with `initialize`, and follow again",
            self.store.prefix()
        );
        Error::new(Class::SnapshotMissing, sentence)
    }

    /// Passes the changes of a delta on. The object is fetched and checked as a whole before the first change
    /// is used; memory holds a few changes.
    async fn read_delta(&self, delta: &Snapshot, etcd: &Etcd, sink: &mut Sink<'_>) -> Result<()> {
        let file = ScratchFile::new(self.scratch.join(delta.to_string()));
        self.fetch(delta, file.path()).await?;
        let (sender, mut entries) = mpsc::channel(ENTRIES);
        let path = file.path().to_owned();
        // The thread ends when the receiver is dropped.
        let reading = tokio::task::spawn_blocking(move || read_file(&path, &sender));
        let wrong = |what: String| corrupt(delta, &what);
        let mut revisions = Grouping::after(sink.reached);
        while let Some(Entry { event, lease_ttl, .. }) = entries.recv().await {
            let (number, lease) = (event.kv.mod_revision, event.kv.lease);
            let change = Change::check(event.kind, event.kv.with_lease(lease)).map_err(wrong)?;
            if let Some(revision) = revisions.push(number, (change, lease_ttl)).map_err(wrong)? {
                sink.push(etcd, revision).await?;
            }
        }
        let read = reading.await;
        read.map_err(|e| Error::new(Class::Tool, format!("reading {delta} failed: {e}")))?
            .map_err(wrong)?;
        if let Some(revision) = revisions.finish().map_err(wrong)? {
            sink.push(etcd, revision).await?;
        }
        tracing::info!(%delta, revision = sink.reached, "followed");
        Ok(())
    }

    async fn fetch(&self, delta: &Snapshot, to: &Path) -> Result<()> {
        let created = tokio::fs::File::create(to).await;
        let mut file = created.map_err(|e| Error::file("create", to, &e))?;
        self.store.read_verified(delta, &mut file).await?;
        file.shutdown().await.map_err(|e| Error::file("write", to, &e))
    }
}

fn read_file(path: &Path, sender: &Sender<Entry>) -> Result<(), String> {
    let content = open_entries(path).map_err(|e| e.to_string())?;
    let pass_on = |entry| sender.blocking_send(entry).map_err(|e| e.to_string());
    read_entries(content, pass_on).map_err(|e| format!("its events cannot be read ({e})"))
}

/// Connects to the source.
pub(super) async fn connect(config: &EtcdConfig, progress: &FollowProgress) -> Result<Etcd> {
    let etcd = config.connect().await?;
    progress.check_cluster(etcd.cluster_id().await?)?;
    Ok(etcd)
}

/// Whether the source has the history that was read before. While the connection was broken, the source may
/// have lost its newest revisions, for example with a volume that was put back. Where the last revision that
/// was read cannot be compared, or differs, etcd's hash over the whole history decides.
async fn check_history(source: &Etcd, sink: &Sink<'_>) -> Result<()> {
    let progress = sink.progress;
    if sink.reached <= 1 || !progress.is_history_checked() {
        return Ok(());
    }
    newest_revision(source, sink).await?;
    progress.wait_for_proof(sink.reached).await;
    let local = sink.leases.etcd();
    let (here, there) = try_join(changes_of(local, sink.reached), changes_of(source, sink.reached)).await?;
    if here.is_none() || here != there {
        progress.request_check();
    }
    Ok(())
}

/// The newest revision of the source. An error where the local etcd is ahead.
async fn newest_revision(source: &Etcd, sink: &Sink<'_>) -> Result<i64> {
    let newest = source.revision().await?;
    sink.progress.source_at(newest);
    let reached = sink.reached.max(sink.applied);
    if newest < reached {
        return Err(behind(newest, reached));
    }
    Ok(newest)
}

/// The changes of a revision, unless a compaction removed the changes.
async fn changes_of(etcd: &Etcd, revision: i64) -> Result<Option<Vec<Change>>> {
    let mut watch = RevisionWatch::after(etcd, revision - 1).await?;
    let changes = async {
        loop {
            if let Some((_, changes)) = watch.next().await?.revisions.into_iter().next() {
                return Ok::<_, Error>(Some(changes));
            }
        }
    };
    match timeout(HISTORY_CHECK, changes).await {
        // `Diverged`: the watch begins with a later revision.
        Ok(Err(e)) if matches!(e.class, Class::Compacted | Class::Diverged) => Ok(None),
        Ok(changes) => changes,
        Err(_) => Ok(None),
    }
}

fn behind(newest: i64, reached: i64) -> Error {
    let sentence = format!(
        "the source is at revision {newest}, and the local etcd is at revision {reached} already; remove the data \
         directory and prepare the etcd again"
    );
    Error::new(Class::Diverged, sentence)
}

/// Whether a further attempt to read cannot help.
pub(super) fn is_final(class: Class) -> bool {
    matches!(
        class,
        Class::Configuration | Class::Diverged | Class::NotPermitted | Class::SnapshotMissing
    )
}
