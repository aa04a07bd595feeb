//! `initialize`: makes sure that etcd starts with the data it must have, or does not start.
//!
//! - The data directory is sound: nothing is changed. (If the store cannot be asked just then, so be it: a restart of
//!   etcd must not depend on the bucket.)
//! - It is missing, broken, or behind the store: the newest chain is restored beside it and takes its place by renames.
//!   Every object is fetched and checked before etcd's tools see the first; an object that cannot be trusted, or a
//!   hole, is an error, the volume stays as it was, and the next run tries again.
//! - The store holds nothing and there is no data: etcd starts empty, unless `--require-snapshot` says that this
//!   etcd must have a past.

mod bolt;
mod data_dir;
mod replay;
mod tools;

pub use tools::{Member, Tools};

use crate::chain::{self, Chain};
use crate::error::{Class, Error, Result};
use crate::snapshot_name::Snapshot;
use crate::store::Store;
use data_dir::Condition;
use serde::Serialize;
use std::path::{Path, PathBuf};
use tokio::io::AsyncWriteExt;

/// What to initialize.
pub struct Initialize {
    /// etcd's data directory; it must lie below the mount point of the volume, not be it.
    pub data_dir: PathBuf,
    /// Where snapshots are.
    pub store: Store,
    /// etcd's programs.
    pub tools: Tools,
    /// The member that etcd will be.
    pub member: Member,
    /// Starting empty is an error.
    pub require_snapshot: bool,
}

/// What was done.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result")]
pub enum Outcome {
    /// The data directory was sound.
    Kept {
        /// Revision in its database; the write-ahead log may hold more.
        revision: i64,
    },
    /// The newest chain was restored.
    Restored {
        /// Objects used, in order.
        snapshots: Vec<String>,
        /// Revision that etcd starts with.
        revision: i64,
    },
    /// There is nothing to restore.
    Fresh,
}

impl Initialize {
    /// Does it. On an error nothing was changed.
    pub async fn run(&self) -> Result<Outcome> {
        let work = data_dir::WorkDir::new(&self.data_dir)?;
        let condition = data_dir::inspect(&self.data_dir, &self.tools).await?;
        let listing = match (self.store.list().await, &condition) {
            (Ok(listing), _) => listing,
            (Err(e), Condition::Sound(revision)) => {
                tracing::warn!(error = %e, "the data directory is sound, so etcd may start without the store");
                return Ok(Outcome::Kept { revision: *revision });
            }
            (Err(e), _) => return Err(e),
        };
        if let Condition::Sound(revision) = condition
            && self.holds_all_of(&listing, revision, &work).await?
        {
            return Ok(Outcome::Kept { revision });
        }
        let Some(newest) = chain::newest(&listing)? else {
            return self.start_empty(&condition);
        };
        if let Condition::Broken(what) = &condition {
            tracing::warn!(what, "the data directory cannot be used; restoring");
        }
        let revision = self.restore(&newest, &work).await?;
        data_dir::swap(work.result(), &self.data_dir, work.replaced())?;
        Ok(Outcome::Restored {
            snapshots: newest.objects().map(ToString::to_string).collect(),
            revision,
        })
    }

    fn start_empty(&self, condition: &Condition) -> Result<Outcome> {
        match condition {
            Condition::Missing if !self.require_snapshot => Ok(Outcome::Fresh),
            Condition::Missing => Err(Error::new(
                Class::SnapshotMissing,
                format!(
                    "there is no data and no snapshot below {}; bring the snapshots there",
                    self.store.prefix()
                ),
            )),
            Condition::Sound(revision) => Ok(Outcome::Kept { revision: *revision }),
            Condition::Broken(what) => Err(Error::new(
                Class::SnapshotMissing,
                format!(
                    "the data directory {} is broken ({what}) and there is no snapshot below {} to restore; bring \
                     snapshots there, or delete the volume to start empty",
                    self.data_dir.display(),
                    self.store.prefix()
                ),
            )),
        }
    }

    /// Whether sound data reach the end of the store. The database file may lag behind the write-ahead log, so where it
    /// seems to be behind, a local etcd on a copy is asked.
    async fn holds_all_of(
        &self,
        listing: &[Snapshot],
        revision: i64,
        work: &data_dir::WorkDir,
    ) -> Result<bool> {
        let Some(stored) = listing
            .iter()
            .map(|s| s.last_revision)
            .max()
            .filter(|stored| *stored > revision)
        else {
            return Ok(true);
        };
        let copy = work.begin()?;
        data_dir::copy(&self.data_dir, &copy)?;
        let held = replay::revision_of(&self.tools, &copy).await?;
        data_dir::remove(&copy)?;
        if held < stored {
            tracing::warn!(
                held,
                stored,
                "the data directory is older than the store; restoring"
            );
        }
        Ok(held >= stored)
    }

    /// Builds the restored data directory in the work directory; gives its revision.
    ///
    /// A database file seems to be at an older revision than it is where the newest change was a deletion and was
    /// compacted; only a running etcd knows then.
    async fn restore(&self, chain: &Chain, work: &data_dir::WorkDir) -> Result<i64> {
        let folder = work.begin()?;
        let full = folder.join("full.db");
        let mut deltas = Vec::new();
        self.fetch(&chain.full, &full).await?;
        for delta in &chain.deltas {
            let file = folder.join(delta.to_string());
            self.fetch(delta, &file).await?;
            deltas.push((delta, file));
        }
        let held = self
            .tools
            .revision(&full)
            .await
            .map_err(|e| trusted(&chain.full, e))?;
        let (database, reached) = if deltas.is_empty() && held >= chain.full.last_revision {
            (full, held)
        } else {
            let grown = folder.join("replayed.db");
            let reached = replay::replay(&self.tools, (&chain.full, &full), &deltas, &folder, &grown).await?;
            data_dir::remove(&full)?;
            for (_, file) in &deltas {
                data_dir::remove(file)?;
            }
            (grown, reached)
        };
        // It checks the hash once more; walking through the result again would only add to the seconds without an API.
        self.tools.restore(&database, work.result(), &self.member).await?;
        data_dir::remove(&database)?;
        data_dir::sync(work.result())?;
        Ok(reached)
    }

    async fn fetch(&self, snapshot: &Snapshot, to: &Path) -> Result<()> {
        let created = tokio::fs::File::create(to).await;
        let mut file = created.map_err(|e| Error::file("create", to, &e))?;
        let bytes = self.store.read_verified(snapshot, &mut file).await?;
        file.shutdown().await.map_err(|e| Error::file("write", to, &e))?;
        tracing::info!(%snapshot, bytes, "fetched and verified");
        Ok(())
    }
}

/// A database that etcdutl finds broken although its hash is right was broken when it was taken.
fn trusted(full: &Snapshot, error: Error) -> Error {
    if error.class == Class::SnapshotCorrupt {
        crate::store::corrupt(full, &error.message)
    } else {
        error
    }
}
