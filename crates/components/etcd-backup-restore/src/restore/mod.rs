//! `initialize`: makes sure that etcd starts with the required data, or does not start.
//!
//! - The data directory is sound: it stays unchanged. An unreachable store is no error here, because a
//!   restart of etcd must not depend on the bucket.
//! - The data directory is missing, broken, of an earlier ownership epoch, or behind the store. Then the
//!   newest chain of the epoch is restored beside the data directory, and renames swap the two. The replaced
//!   directory is kept until etcd serves. If the chain does not reach the end of its own epoch, the restore
//!   skips revisions: no revision may be given twice. The restore also skips revisions if etcd may have
//!   served in this epoch before: then the volume was lost together with later changes.
//! - The data directory or the store is of a later epoch: no change, because the shoot continues elsewhere.
//! - The data directory is of the epoch that this epoch continues in the same store: the data stay, and
//!   belong to this epoch from then on.
//! - The epoch was sealed: sound data are kept behind a gate, for the final snapshot; there is no restore.
//! - A restore fetches and checks every object before etcd's tools read the first. An object that cannot be
//!   trusted, or a hole, is an error; the volume stays unchanged, and the next run tries again.
//! - The epoch continues an earlier epoch in the same store, and its chain ends before the revision at which
//!   the earlier epoch was sealed. If the volume is unusable or ends before that revision too, this is an
//!   error: only the newest volume may have the rest.
//! - The restored data end before the revision with which the epoch is recorded to begin: an error, and the
//!   volume stays unchanged.
//! - The store is empty and there is no data: etcd starts empty, unless `--require-snapshot` says that this
//!   etcd must have earlier data.
//!
//! | file | content |
//! |---|---|
//! | `data_dir` | the data directory: check and swap; `replaced`: the replaced directory |
//! | `begins` | the first revision of an epoch |
//! | `adopted` | an epoch that continues an earlier epoch of the same seed |
//! | `sealed` | `initialize` in an epoch that was lost |
//! | `history` | the changes in the database; `apply` adds deltas, `bolt` writes the file |
//! | `settle` | a database that is too large; `local`: the etcd that drops former values |
//! | `room` | the free space on the volume |
//! | `tools` | `etcdutl` and `etcd` |
//! | `report` | the report of `initialize` |
//! | `prepare` | `prepare`, for an etcd without backups |

mod adopted;
mod apply;
mod begins;
mod bolt;
mod data_dir;
mod history;
mod local;
mod prepare;
mod replaced;
mod report;
mod room;
mod sealed;
mod settle;
mod tools;

pub use prepare::{Prepare, Prepared};
pub use replaced::remove_replaced;
pub use report::Initialized;
pub use tools::{Member, Tools};

use crate::chain::{self, Chain};
use crate::error::{Class, Error, Result};
use crate::restored_note::RestoredNote;
use crate::snapshot_name::Snapshot;
use crate::store::{Recorded, Store};
use data_dir::Condition;
use futures::future::{join, try_join};
use ownership::LEFT_OUT_WITHIN_EPOCH;
use report::{report_begin_with_chain, report_begin_with_volume, report_volume_loss};
use settle::Unsettled;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tokio::io::AsyncWriteExt;
use tools::Fsync;

/// The parameters of `initialize`.
pub struct Initialize {
    /// etcd's data directory; a folder below the mount point of the volume, not the mount point.
    pub data_dir: PathBuf,
    /// The store that holds the snapshots.
    pub store: Store,
    /// etcd's programs.
    pub tools: Tools,
    /// The name and URLs of the etcd member.
    pub member: Member,
    /// Starting empty is an error.
    pub require_snapshot: bool,
    /// Clients reach the etcd that follows through a gate alone.
    pub behind_gate: bool,
    /// Largest database that the etcd that follows may have, in bytes.
    pub quota: u64,
}

impl Initialize {
    /// Runs `initialize`. On an error the volume is unchanged.
    pub async fn run(&self) -> Result<Initialized> {
        let epoch = self.store.epoch();
        let work = data_dir::WorkDir::new(&self.data_dir)?;
        let sealed = self.is_sealed()?;
        let condition = data_dir::inspect(&self.data_dir, &self.tools, epoch).await?;
        if sealed {
            return self.keep_sealed(&condition);
        }
        let own = match (self.store.own_epoch().await, &condition) {
            (Ok(own), condition) if own.is_sealed => return self.keep_sealed(condition),
            (Ok(own), _) => own,
            (Err(e), Condition::Sound(revision)) if e.class != Class::OtherEpoch => {
                tracing::warn!(error = %e, "the data directory is sound, so etcd may start without the store");
                return Ok(Initialized::kept(*revision));
            }
            (Err(e), _) => return Err(e),
        };
        let was_own = matches!(condition, Condition::Sound(_));
        let condition = self.adopted(condition, own.origin, &work).await?;
        let (listing, hole) = match (self.listing(own.origin).await, &condition) {
            (Ok(found), _) => found,
            (Err(e), Condition::Sound(revision)) if was_own || is_of_one_object(&e) => {
                tracing::warn!(error = %e, "the data directory is sound, so etcd may start without the store");
                data_dir::mark(&self.data_dir, epoch)?;
                // The data were not compared with the store: without a report of a begin the loss stays
                // unknown.
                return Ok(Initialized::kept(*revision));
            }
            (Err(e), _) => return Err(e),
        };
        if let Condition::Sound(revision) = condition
            && self.holds_all_of(&listing, revision, &work).await?
        {
            if !was_own {
                self.note_begin().await;
            }
            data_dir::mark(&self.data_dir, epoch)?;
            return Ok(Initialized::Kept {
                revision,
                begin: (!was_own).then(|| report_begin_with_volume(epoch, revision)),
            });
        }
        if let Some(hole) = hole {
            return Err(hole);
        }
        let newest = chain::newest(&listing)?;
        if let Some(origin) = own.origin {
            self.check_sealed(origin, newest.as_ref(), &condition).await?;
        }
        let recorded = self.store.recorded(epoch).await?;
        if let Some(recorded) = &recorded {
            begins::check(recorded, newest.as_ref(), &self.store.prefix())?;
        }
        let Some(newest) = newest else {
            return self.start_empty(&condition).await;
        };
        match &condition {
            Condition::Broken(what) => tracing::warn!(what, "the data directory cannot be used; restoring"),
            Condition::OfEpoch(own) => {
                tracing::warn!(
                    own,
                    epoch,
                    "the data directory belongs to another ownership epoch; restoring"
                );
            }
            _ => {}
        }
        self.replace(&newest, recorded.as_ref(), &work).await
    }

    /// Restores a chain and replaces the data directory.
    async fn replace(
        &self,
        newest: &Chain,
        recorded: Option<&Recorded>,
        work: &data_dir::WorkDir,
    ) -> Result<Initialized> {
        let epoch = self.store.epoch();
        let (revision, has_served) = self.restore(newest, work).await?;
        data_dir::mark(work.result(), epoch)?;
        // Before etcd can start with this revision.
        RestoredNote { epoch, revision }.write(&self.store).await?;
        data_dir::swap(work, &self.data_dir)?;
        let volume_loss = has_served.then(|| report_volume_loss(epoch, newest, revision));
        if let Some(loss) = &volume_loss {
            tracing::warn!(
                ?loss,
                "the volume was lost: changes that no snapshot has are lost"
            );
        }
        Ok(Initialized::Restored {
            snapshots: newest.objects().map(ToString::to_string).collect(),
            revision,
            begin: report_begin_with_chain(epoch, newest, recorded),
            volume_loss,
        })
    }

    /// Notes that etcd begins the epoch with the volume of an earlier epoch. A bucket that refuses the write
    /// does not keep etcd from sound data.
    async fn note_begin(&self) {
        let note = RestoredNote {
            epoch: self.store.epoch(),
            revision: 0,
        };
        if let Err(error) = note.write(&self.store).await {
            tracing::warn!(
                %error,
                "the begin of the epoch is not noted in the bucket: a loss of the volume before the first snapshot would be missed"
            );
        }
    }

    async fn start_empty(&self, condition: &Condition) -> Result<Initialized> {
        if let Condition::Sound(revision) = condition {
            return Ok(Initialized::kept(*revision));
        }
        self.no_other_epoch(condition).await?;
        match condition {
            Condition::Missing if !self.require_snapshot => {
                data_dir::mark(&self.data_dir, self.store.epoch())?;
                Ok(Initialized::Fresh)
            }
            Condition::Missing => Err(Error::new(
                Class::SnapshotMissing,
                format!(
                    "there is no data and no snapshot below {}; bring the snapshots there",
                    self.store.prefix()
                ),
            )),
            Condition::Sound(_) | Condition::OfEpoch(_) => Err(Error::new(
                Class::OtherEpoch,
                format!(
                    "the data directory {} is not of this epoch",
                    self.data_dir.display()
                ),
            )),
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

    /// An etcd never starts empty beside data of a different epoch: the chain with which this epoch should
    /// begin has not been recorded.
    async fn no_other_epoch(&self, condition: &Condition) -> Result<()> {
        let epoch = self.store.epoch();
        let mut found: BTreeSet<_> = self.store.everything().await?.iter().map(|s| s.epoch).collect();
        if let Condition::OfEpoch(own) = condition {
            found.insert(*own);
        }
        if found.is_empty() {
            return Ok(());
        }
        Err(Error::new(
            Class::OtherEpoch,
            format!(
                "no chain is recorded for ownership epoch {epoch} below {}, while store and volume hold data of the epochs \
                 {found:?}: copy the chain that epoch {epoch} begins with (etcd-backup-restore copy --ownership-epoch={epoch})",
                self.store.prefix()
            ),
        ))
    }

    /// Whether sound data reach the end of the store. The database file may lag behind the write-ahead log.
    /// If the file seems to be behind, a local etcd on a copy reports the revision.
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
        let held = self.held_revision(work).await?;
        if held < stored {
            tracing::warn!(
                held,
                stored,
                "the data directory is older than the store; restoring"
            );
        }
        Ok(held >= stored)
    }

    /// The revision of the data directory with its write-ahead log, from a local etcd on a copy.
    async fn held_revision(&self, work: &data_dir::WorkDir) -> Result<i64> {
        let copy = work.begin()?;
        data_dir::copy(&self.data_dir, &copy)?;
        let held = local::revision_of(&self.tools, &copy).await?;
        data_dir::remove(&copy)?;
        Ok(held)
    }

    /// Builds the restored data directory in the work directory. Returns its revision, and whether etcd may
    /// have served in the epoch before.
    async fn restore(&self, chain: &Chain, work: &data_dir::WorkDir) -> Result<(i64, bool)> {
        let folder = work.begin()?;
        room::check(&folder, room::needed_at_least(chain))?;
        let full = folder.join("full.db");
        let (size, (deltas, of_deltas)) =
            try_join(self.fetch(&chain.full, &full), self.fetch_deltas(chain, &folder)).await?;
        // The fetched files already occupy their space.
        room::check(&folder, room::needed(size, of_deltas) - size - of_deltas)?;
        // The hash was checked during the fetch.
        let (held, restored) = join(
            self.tools.revision(&full),
            self.tools.restore(&full, work.result(), &self.member),
        )
        .await;
        held.map_err(|e| trusted(&chain.full, e))?;
        restored?;
        data_dir::remove(&full)?;
        let database = data_dir::database(work.result());
        let applied = apply::apply(&database, &chain.full, &deltas).await?;
        if let Some(unsettled) = Unsettled::find(applied.size, applied.alarm, self.quota) {
            let place = (work.result(), &self.member, Fsync::Off);
            let judged = (unsettled, self.quota);
            settle::settle(&self.tools, place, applied.revision, judged).await?;
        }
        let epoch = self.store.epoch();
        let recorded = self.store.recorded(epoch).await?;
        if let Some(recorded) = &recorded {
            begins::check_restored(recorded, applied.revision)?;
        }
        // The mark `.final` is no evidence: the chain was judged when it was chosen.
        let is_complete = recorded.is_some_and(|recorded| recorded.is_complete(chain));
        let breaks_off = !is_complete && chain.last().epoch < epoch;
        let note = RestoredNote::read(&self.store).await?;
        let has_served = note.is_some() || chain.last().epoch == epoch;
        if deltas.is_empty() && !breaks_off && !has_served {
            data_dir::sync(work.result())?;
            return Ok((applied.revision, false));
        }
        let mut revision = applied.revision;
        if breaks_off {
            // An owner in between may have skipped as many revisions before its first snapshot.
            revision = apply::leave_out(&database, epoch - chain.last().epoch).await?;
            tracing::warn!(
                restored = applied.revision,
                begins_with = revision,
                "the former owner may have acknowledged changes after this revision: they are lost, and their revisions are left out"
            );
        }
        if has_served {
            let reached = note.map_or(revision, |note| note.revision.max(revision));
            let next = reached.saturating_add(LEFT_OUT_WITHIN_EPOCH);
            revision = apply::advance(&database, next).await?;
        }
        self.judge(&database, revision, work).await?;
        Ok((revision, has_served))
    }

    /// Syncs the result to the disk, while `etcdutl` reads the whole database.
    async fn judge(&self, database: &Path, revision: i64, work: &data_dir::WorkDir) -> Result<()> {
        let result = work.result().to_owned();
        let syncing = tokio::task::spawn_blocking(move || data_dir::sync(&result));
        let held = self.tools.revision(database).await;
        syncing
            .await
            .map_err(|e| Error::new(Class::DataDirectory, format!("the sync failed: {e}")))??;
        let wrong = |what: String| {
            let sentence = format!("what was restored is not used: {what}; nothing was changed");
            Error::new(Class::Tool, sentence)
        };
        let held = match held {
            // Of a deletion that was the newest change and was dropped there is a mark alone.
            Ok(held) if held < revision => apply::revision_of(database)?,
            Err(e) if e.class == Class::SnapshotCorrupt => return Err(wrong(e.message)),
            held => held?,
        };
        if held == revision {
            return Ok(());
        }
        Err(wrong(format!(
            "it should be at revision {revision} and is at {held}"
        )))
    }

    /// Fetches the deltas in sequence; returns the files and their total size in bytes.
    async fn fetch_deltas<'a>(
        &self,
        chain: &'a Chain,
        folder: &Path,
    ) -> Result<(Vec<(&'a Snapshot, PathBuf)>, u64)> {
        let (mut deltas, mut bytes) = (Vec::new(), 0);
        for delta in &chain.deltas {
            let file = folder.join(delta.to_string());
            bytes += self.fetch(delta, &file).await?;
            deltas.push((delta, file));
        }
        Ok((deltas, bytes))
    }

    async fn fetch(&self, snapshot: &Snapshot, to: &Path) -> Result<u64> {
        let created = tokio::fs::File::create(to).await;
        let mut file = created.map_err(|e| Error::file("create", to, &e))?;
        let bytes = self.store.read_verified(snapshot, &mut file).await?;
        file.shutdown().await.map_err(|e| Error::file("write", to, &e))?;
        tracing::info!(%snapshot, bytes, "fetched and verified");
        Ok(bytes)
    }
}

/// Whether the store answers, and a single object is the cause: a retry does not help.
fn is_of_one_object(error: &Error) -> bool {
    matches!(error.class, Class::SnapshotUnparsable | Class::SnapshotCorrupt)
}

/// The database was already broken when the snapshot was taken if etcdutl finds it broken although the hash
/// is right.
fn trusted(full: &Snapshot, error: Error) -> Error {
    if error.class == Class::SnapshotCorrupt {
        crate::store::corrupt(full, &error.message)
    } else {
        error
    }
}
