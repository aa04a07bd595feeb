//! An epoch that continues an earlier epoch of the same seed. A move was cancelled after its source had
//! sealed its epoch, or the shoot came back before another seed had opened its data. No data are copied, and
//! no data are lost.

use super::Initialize;
use super::data_dir::{Condition, WorkDir, inspect};
use crate::chain::{self, Chain};
use crate::copy::{StatedEnd, missing_changes};
use crate::error::{Class, Error, Result};
use crate::snapshot_name::{Kind, Snapshot};
use crate::store::Recorded;
use ownership::keeps_data;

impl Initialize {
    /// The snapshots of the epoch, after the chain was chosen with which the epoch begins. With a hole no
    /// chain is chosen: then the listing has the snapshots of `origin` too, for sound data that may reach
    /// their end.
    pub(super) async fn listing(&self, origin: Option<i64>) -> Result<(Vec<Snapshot>, Option<Error>)> {
        let mut hole = None;
        if let Some(origin) = origin {
            let listing = self.store.list().await?;
            // With a full snapshot of its own the epoch needs no chain of an earlier epoch.
            if listing.iter().any(|snapshot| snapshot.kind == Kind::Full) {
                return Ok((listing, None));
            }
            hole = match self.record_what_it_goes_on_with(origin).await {
                Err(e) if e.class == Class::SnapshotMissing => Some(e),
                recorded => recorded.map(|()| None)?,
            };
        }
        let mut listing = self.store.list().await?;
        if let (Some(origin), Some(_)) = (origin, &hole) {
            listing.extend(self.store.history(origin).await?);
        }
        Ok((listing, hole))
    }

    /// Refuses to restore a chain that ends before the revision at which `origin` was sealed in this store:
    /// the volume of that epoch has the rest.
    pub(super) async fn check_sealed(
        &self,
        origin: i64,
        newest: Option<&Chain>,
        condition: &Condition,
    ) -> Result<()> {
        let stated = StatedEnd::read(&self.store, origin).await?;
        let Some(sealed) = stated.revision() else {
            return Ok(());
        };
        let reached = newest.map_or(0, Chain::last_revision);
        let missing = missing_changes(reached, sealed, origin);
        if missing == 0 {
            return Ok(());
        }
        let (epoch, folder) = (self.store.epoch(), self.store.prefix());
        let cause = match condition {
            Condition::Broken(cause) => format!(" ({cause})"),
            _ => String::new(),
        };
        Err(Error::new(
            Class::SnapshotMissing,
            format!(
                "ownership epoch {epoch} goes on with epoch {origin}, which was sealed at revision {sealed}, and the snapshots below \
                 {folder} end at revision {reached}: the other {missing} revisions were on the volume of {data_dir}, which is lost or \
                 broken{cause}. Put that volume or the missing snapshots back; if these {missing} revisions may be lost, remove sealed.json \
                 beside {folder}. Nothing was changed",
                data_dir = self.data_dir.display(),
            ),
        ))
    }

    /// Records once the chain with which the epoch begins, from the snapshots in its own store. A store
    /// without snapshots has no chain.
    async fn record_what_it_goes_on_with(&self, origin: i64) -> Result<()> {
        let epoch = self.store.epoch();
        if self.store.recorded(epoch).await?.is_some() {
            return Ok(());
        }
        let Some(newest) = chain::newest(&self.store.history(origin).await?)? else {
            return Ok(());
        };
        let stated = StatedEnd::read(&self.store, origin).await?;
        let chosen = Recorded {
            complete: stated.is_reached_by(&newest, origin),
            ..Recorded::from_chain(&newest, epoch, origin)
        };
        let recorded = self.store.record(chosen).await?;
        tracing::info!(
            epoch,
            origin,
            revision = recorded.last_revision,
            "the epoch goes on where an earlier one of this place has ended"
        );
        Ok(())
    }

    /// The condition of data of the epoch that this epoch continues. A volume that an operator has put back
    /// may be older than the seal: data that end before the sealed revision are unusable, since etcd would
    /// assign acknowledged revisions again.
    pub(super) async fn adopted(
        &self,
        condition: Condition,
        origin: Option<i64>,
        work: &WorkDir,
    ) -> Result<Condition> {
        let epoch = self.store.epoch();
        let own = match condition {
            Condition::OfEpoch(own) if keeps_data(epoch, origin, own) => own,
            other => return Ok(other),
        };
        let mut found = inspect(&self.data_dir, &self.tools, own).await?;
        if let Condition::Sound(revision) = found {
            found = self.compare_with_seal(own, revision, work).await?;
        }
        tracing::info!(
            origin,
            epoch,
            ?found,
            "the data directory is of the epoch that this one goes on with"
        );
        Ok(found)
    }

    /// The condition of sound data of `origin`. `revision`: of the database file. The write-ahead log may
    /// hold more, and is read only where the database file ends before the sealed revision.
    async fn compare_with_seal(&self, origin: i64, revision: i64, work: &WorkDir) -> Result<Condition> {
        let stated = StatedEnd::read(&self.store, origin).await?;
        let is_behind = |revision, sealed: &i64| missing_changes(revision, *sealed, origin) > 0;
        let Some(sealed) = stated.revision().filter(|sealed| is_behind(revision, sealed)) else {
            return Ok(Condition::Sound(revision));
        };
        let held = self.held_revision(work).await?;
        if !is_behind(held, &sealed) {
            return Ok(Condition::Sound(held));
        }
        Ok(Condition::Broken(format!(
            "the volume holds an older state of epoch {origin}, which ends at revision {held}: to accept the loss, delete the \
             volume before sealed.json is removed"
        )))
    }
}
