//! `prepare`: gives an etcd without backups revisions above every revision of its former data.
//!
//! The etcd with the Events begins empty on each seed, at revision 1. A client that watches from a revision
//! of the former seed would wait for this revision and miss every Event, without an error. Here the history
//! begins above each former revision, and everything before counts as compacted: kube-apiserver answers such
//! a watch with 410, and the client lists again.
//!
//! - No data: an empty data directory is created, at the first revision of this epoch and moment.
//! - Data of this epoch: nothing is changed.
//! - Data of an earlier epoch, from an earlier residency or before a renewal: the data stay, and the
//!   revisions continue at the first revision of this epoch. Where that fails, for lack of disk for example,
//!   an etcd whose data may be lost begins empty, as without data. Other data are never removed.

use super::apply;
use super::data_dir::{self, WorkDir};
use super::local::Local;
use super::settle::{self, Unsettled};
use super::tools::{Fsync, Member, Tools};
use crate::clock;
use crate::error::{Error, Result};
use jiff::Timestamp;
use serde::Serialize;
use std::path::PathBuf;

/// Revisions of an epoch. The ownership epoch increases with each move, also where the source is dead, and
/// needs no clock. A later epoch begins above all revisions of an earlier epoch, as no etcd makes 2^45
/// changes.
const EPOCH: i64 = 1 << 46;
/// Epochs that have revisions of their own. Half of the 64 bits stays free; in later epochs the time alone
/// counts.
const EPOCHS: i64 = 1 << 16;
/// Revisions of a second. Where the volume is lost within an epoch, the time since 1970 takes the place of
/// the former revisions. More than the changes that an etcd with Events makes in a second, on average since
/// its start.
const SECOND: i64 = 1 << 13;
/// Seconds that fit into an epoch, until the year 2242.
const SECONDS: i64 = (1 << 33) - 1;

/// The parameters of `prepare`, for an etcd without backups that is about to start.
pub struct Prepare {
    /// etcd's data directory; a folder below the mount point of the volume, not the mount point.
    pub data_dir: PathBuf,
    /// etcd's programs.
    pub tools: Tools,
    /// The name and URLs of the etcd member.
    pub member: Member,
    /// The ownership epoch of the shoot.
    pub epoch: i64,
    /// Largest database that the etcd that follows may have, in bytes.
    pub quota: u64,
    /// Whether the data may be lost, as Events may: where the data of an earlier epoch cannot be continued,
    /// etcd begins empty.
    pub disposable: bool,
}

/// The report, for standard output and the termination message.
#[derive(Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result")]
pub enum Prepared {
    /// The data directory was of this epoch.
    Kept,
    /// An empty data directory was created.
    Fresh {
        /// Revision that etcd starts with.
        revision: i64,
    },
    /// The data of an earlier epoch stay.
    Advanced {
        /// Revision that etcd starts with.
        revision: i64,
    },
}

/// The revision with which an empty etcd begins in an epoch at a time.
fn first_revision(epoch: i64, now: Timestamp) -> i64 {
    let epoch = epoch.clamp(1, EPOCHS);
    let seconds = now.as_second().clamp(0, SECONDS);
    epoch * EPOCH + seconds * SECOND
}

impl Prepare {
    /// Prepares the data directory. After an error the next run starts over.
    pub async fn run(&self) -> Result<Prepared> {
        let work = WorkDir::new(&self.data_dir)?;
        if data_dir::is_missing(&self.data_dir)? {
            return self.begin(&work).await;
        }
        let own = data_dir::read_mark(&self.data_dir)?;
        if own > self.epoch {
            return Err(data_dir::later_epoch(&self.data_dir, own, self.epoch));
        }
        self.settle().await;
        if own == self.epoch {
            return Ok(Prepared::Kept);
        }
        let advanced = self.advance(&work).await;
        match advanced {
            Err(error) if self.disposable => {
                tracing::warn!(%error, "the data of the earlier epoch cannot go on, and are removed");
                // A new write-ahead log needs room, too: the copy and the data make room. The epoch mark
                // stays.
                drop(work);
                data_dir::remove(&data_dir::member(&self.data_dir))?;
                self.begin(&WorkDir::new(&self.data_dir)?).await
            }
            prepared => prepared,
        }
    }

    /// Makes room and disarms alarm NOSPACE where the alarm is raised: no process beside this etcd would. On
    /// a failure etcd starts with the unchanged data: reads and deletions work.
    async fn settle(&self) {
        let database = data_dir::database(&self.data_dir);
        let found = match apply::inspect(&database) {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(%error, "the database cannot be read; etcd judges the data directory itself");
                return;
            }
        };
        let unsettled =
            Unsettled::find(found.size, found.alarm, self.quota).filter(|unsettled| unsettled.alarm);
        let Some(unsettled) = unsettled else {
            return;
        };
        let place = (self.data_dir.as_path(), &self.member, Fsync::On);
        let judged = (unsettled, self.quota);
        let settled = settle::settle(&self.tools, place, found.revision, judged).await;
        if let Err(error) = settled.and_then(|()| data_dir::sync(&self.data_dir)) {
            tracing::warn!(%error, "could not make room in the database; etcd goes on and refuses writes");
        }
    }

    async fn begin(&self, work: &WorkDir) -> Result<Prepared> {
        work.begin()?;
        let local = Local::start(&self.tools, work.result(), &self.member, Fsync::Off).await?;
        local.stop().await?;
        let database = data_dir::database(work.result());
        let revision = apply::advance(&database, first_revision(self.epoch, clock::now())).await?;
        data_dir::mark(work.result(), self.epoch)?;
        data_dir::sync(work.result())?;
        // At most an epoch mark lies there. No process would remove a directory that `swap` keeps beside the
        // new directory.
        data_dir::remove(&self.data_dir)?;
        data_dir::swap(work, &self.data_dir)?;
        tracing::info!(
            revision,
            epoch = self.epoch,
            "etcd begins empty above all former revisions"
        );
        Ok(Prepared::Fresh { revision })
    }

    async fn advance(&self, work: &WorkDir) -> Result<Prepared> {
        // The write-ahead log may hold changes that the database lacks. Applied later, these changes would
        // get other revisions.
        let local = Local::start(&self.tools, &self.data_dir, &self.member, Fsync::On).await?;
        local.stop().await?;
        data_dir::sync(&self.data_dir)?;
        let database = data_dir::database(&self.data_dir);
        let copy = work.begin()?.join("db");
        data_dir::copy_file(&database, &copy)?;
        let revision = apply::advance(&copy, first_revision(self.epoch, clock::now())).await?;
        // etcd's own tool walks through all pages before etcd gets the file.
        self.tools.revision(&copy).await?;
        data_dir::sync(&copy)?;
        std::fs::rename(&copy, &database).map_err(|e| Error::file("replace", &database, &e))?;
        if let Some(folder) = database.parent() {
            data_dir::sync(folder)?;
        }
        data_dir::mark(&self.data_dir, self.epoch)?;
        tracing::info!(
            revision,
            epoch = self.epoch,
            "the revisions go on above those of former epochs"
        );
        Ok(Prepared::Advanced { revision })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_later_epoch_begins_above_each_revision_of_an_earlier_one_whatever_the_clocks_show() {
        let (early, late) = (Timestamp::UNIX_EPOCH, Timestamp::MAX);
        for epoch in [1, 2, 3, 1000, EPOCHS - 1] {
            let most = first_revision(epoch, late);
            // A clock is centuries behind, and the earlier etcd has made a million changes a second for a
            // year.
            assert!(first_revision(epoch + 1, early) > most, "{epoch}");
            let now: Timestamp = "2026-11-26T00:00:00Z".parse().unwrap();
            let reached = first_revision(epoch, now) + 365 * 24 * 3600 * 1_000_000;
            assert!(first_revision(epoch + 1, now) > reached, "{epoch}");
        }
    }

    #[test]
    fn a_lost_volume_begins_above_the_revisions_of_the_same_epoch() {
        let begun: Timestamp = "2026-11-26T00:00:00Z".parse().unwrap();
        let later: Timestamp = "2026-11-26T00:01:00Z".parse().unwrap();
        assert!(first_revision(2, later) > first_revision(2, begun) + 60 * 8_000);
    }

    #[test]
    fn half_of_all_revisions_stays_free_in_the_last_epoch() {
        assert!(first_revision(i64::MAX, Timestamp::MAX) < i64::MAX / 2 + EPOCH);
    }
}
