//! Applies deltas to a full snapshot: writes the changes into the database as etcd had written them.
//!
//! A delta holds each change with its revision, creation revision and version, and etcd's database is the
//! list of all changes. So no request is replayed: revisions and versions stay, and every resourceVersion
//! that a client of the Kubernetes API remembers stays valid. An etcd that replays the changes as
//! transactions reaches the same database, but takes a multiple of the time and memory
//! (docs/understand/decisions/0011).

use super::history::History;
use crate::delta::{Entry, open_entries, read_entries};
use crate::error::{Class, Error, Result};
use crate::revisions::{Change, Group, Grouping};
use crate::snapshot_name::Snapshot;
use ownership::LEFT_OUT;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The database after deltas were applied.
pub(super) struct Applied {
    /// Newest revision.
    pub(super) revision: i64,
    /// Bytes of the database.
    pub(super) size: u64,
    /// Whether alarm NOSPACE is raised in the database.
    pub(super) alarm: bool,
}

impl Applied {
    fn read(history: &History) -> io::Result<Self> {
        Ok(Self {
            revision: history.revision(),
            size: history.size(),
            alarm: history.refuses_writes()?,
        })
    }
}

/// Adds deltas to a database made from a full snapshot. The resulting revision is never below the revision
/// that the names promise. The work runs on its own thread, and ends when this future is dropped. Memory
/// holds only the current event and the end of the database.
pub(super) async fn apply(
    database: &Path,
    full: &Snapshot,
    deltas: &[(&Snapshot, PathBuf)],
) -> Result<Applied> {
    let (database, full) = (database.to_owned(), full.clone());
    let deltas: Vec<_> = deltas
        .iter()
        .map(|(delta, file)| ((*delta).clone(), file.clone()))
        .collect();
    let stop = Stop::default();
    let stopped = stop.0.clone();
    let applying = tokio::task::spawn_blocking(move || apply_all(&database, &full, &deltas, stopped));
    applying
        .await
        .map_err(|e| Error::new(Class::Tool, format!("adding the deltas failed: {e}")))?
}

/// Stops the thread when the waiting future is dropped.
#[derive(Default)]
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn apply_all(
    database: &Path,
    full: &Snapshot,
    deltas: &[(Snapshot, PathBuf)],
    stopped: Arc<AtomicBool>,
) -> Result<Applied> {
    let failed = |e: &io::Error| match e.kind() {
        ErrorKind::InvalidData => crate::store::corrupt(full, &format!("of its database {e}")),
        _ => Error::file("change", database, e),
    };
    let history = History::open(database).map_err(|e| failed(&e))?;
    reaches(history.revision(), full)?;
    let before = Applied::read(&history).map_err(|e| failed(&e))?;
    if deltas.is_empty() {
        return Ok(before);
    }
    let mut applier = Applier {
        // A full snapshot may hold slightly more than its name says.
        revisions: Grouping::after(history.revision()),
        history,
        stopped,
    };
    for (delta, file) in deltas {
        applier.file(file).map_err(|refused| match refused {
            Refused::Wrong(what) => crate::store::corrupt(delta, &what),
            Refused::Failed(e) => failed(&e),
        })?;
        let revision = applier.history.revision();
        tracing::info!(%delta, revision, "applied");
        reaches(revision, delta)?;
    }
    let revision = applier.history.revision();
    let size = applier.history.close().map_err(|e| failed(&e))?;
    Ok(Applied {
        revision,
        size,
        alarm: before.alarm,
    })
}

/// Skips the revisions that the owners of this number of epochs may have given to clients. Returns the
/// revision with which etcd begins.
pub(super) async fn leave_out(database: &Path, epochs: i64) -> Result<i64> {
    let revisions = LEFT_OUT.saturating_mul(epochs.max(1));
    change(database, move |history| history.leave_out(revisions)).await
}

/// Makes etcd begin at a revision, unless the database is at a later revision; returns the revision with
/// which etcd begins.
pub(super) async fn advance(database: &Path, to: i64) -> Result<i64> {
    let advance = move |history: History| {
        let reached = history.revision();
        if reached < to {
            history.leave_out(to - reached)
        } else {
            Ok(reached)
        }
    };
    change(database, advance).await
}

async fn change(
    database: &Path,
    change: impl FnOnce(History) -> io::Result<i64> + Send + 'static,
) -> Result<i64> {
    let database = database.to_owned();
    let changing = tokio::task::spawn_blocking(move || {
        let changed = History::open(&database).and_then(change);
        changed.map_err(|e| Error::file("change", &database, &e))
    });
    changing
        .await
        .map_err(|e| Error::new(Class::Tool, format!("leaving revisions out failed: {e}")))?
}

/// Revision, size and alarm of a database without added changes.
pub(super) fn inspect(database: &Path) -> Result<Applied> {
    let inspected = History::open(database).and_then(|history| Applied::read(&history));
    inspected.map_err(|e| Error::file("read", database, &e))
}

/// The newest revision of a database.
pub(super) fn revision_of(database: &Path) -> Result<i64> {
    let opened = History::open(database).map_err(|e| Error::file("read", database, &e))?;
    Ok(opened.revision())
}

fn reaches(revision: i64, snapshot: &Snapshot) -> Result<()> {
    if revision >= snapshot.last_revision {
        return Ok(());
    }
    Err(crate::store::corrupt(
        snapshot,
        &format!("with it etcd is at revision {revision} only"),
    ))
}

/// Why a delta could not be applied.
enum Refused {
    /// The delta.
    Wrong(String),
    /// The database.
    Failed(io::Error),
}

struct Applier {
    history: History,
    revisions: Grouping<Entry>,
    stopped: Arc<AtomicBool>,
}

impl Applier {
    /// Applies a verified file.
    fn file(&mut self, path: &Path) -> Result<(), Refused> {
        let unread = |what: String| Refused::Wrong(format!("its events cannot be read ({what})"));
        let content = open_entries(path).map_err(Refused::Failed)?;
        let mut refused = None;
        let each = |entry| {
            self.take(entry).map_err(|why| {
                refused = Some(why);
                "it was refused".to_owned()
            })
        };
        let read = read_entries(content, each);
        if let Some(refused) = refused {
            return Err(refused);
        }
        read.map_err(|e| unread(e.to_string()))?;
        let last = self.revisions.finish().map_err(Refused::Wrong)?;
        last.map_or(Ok(()), |revision| self.write(revision))
    }

    fn take(&mut self, entry: Entry) -> Result<(), Refused> {
        if self.stopped.load(Ordering::SeqCst) {
            return Err(Refused::Failed(io::Error::other("the restore was given up")));
        }
        let complete = self.revisions.push(entry.event.kv.mod_revision, entry);
        let complete = complete.map_err(Refused::Wrong)?;
        complete.map_or(Ok(()), |revision| self.write(revision))
    }

    /// Writes the changes of a revision that was read completely.
    fn write(&mut self, (_, entries): Group<Entry>) -> Result<(), Refused> {
        let mut changes = Vec::with_capacity(entries.len());
        for entry in entries {
            let lease = self.lease(&entry);
            let change = Change::check(entry.event.kind, entry.event.kv.with_lease(lease));
            changes.push(change.map_err(Refused::Wrong)?);
        }
        self.history.add(changes).map_err(Refused::Failed)
    }

    /// The lease of a key: the original lease, if the lease exists or its TTL was recorded.
    fn lease(&mut self, entry: &Entry) -> i64 {
        let lease = entry.event.kv.lease;
        if lease == 0 || self.history.knows(lease) {
            return lease;
        }
        if entry.lease_ttl == 0 {
            // A key that stays is better than a lost key.
            return 0;
        }
        self.history.grant(lease, entry.lease_ttl);
        lease
    }
}
