//! The histories of a store: reads and writes the files of ownership epochs (`epoch`).

use super::Store;
use super::epoch::{FIRST, Recorded, history, newest_below};
use super::ownership::OWNERSHIP;
use crate::error::{Class, Error, Result};
use crate::snapshot_name::Snapshot;
use ::ownership::{Mark, OwnershipObject};
use object_store::{ObjectStoreExt, PutPayload, path::Path};
use permit_object_store::create_object;
use std::cmp::Ordering;
use std::collections::HashMap;

const EPOCHS: &str = "epochs";
const CHAINS: &str = "chains";

/// The statements of `ownership.json` about the epoch for which the store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnEpoch {
    /// The etcd of this epoch never serves again.
    pub is_sealed: bool,
    /// The earlier epoch of this store that this epoch continues, if the file names that epoch: the shoot
    /// came back before another seed had opened its data.
    pub origin: Option<i64>,
}

impl Store {
    /// The epoch for which the store was opened.
    #[must_use]
    pub fn epoch(&self) -> i64 {
        self.epoch
    }

    /// The snapshots of the store's epoch, including the chain with which the epoch began.
    pub async fn list(&self) -> Result<Vec<Snapshot>> {
        self.history(self.epoch).await
    }

    /// Like [`Self::list`], for any epoch.
    pub async fn history(&self, epoch: i64) -> Result<Vec<Snapshot>> {
        let recorded = self.recorded(epoch).await?;
        let listing = self.everything().await?;
        Ok(history(listing, epoch, recorded.as_ref()))
    }

    /// The epoch of this store with whose end `epoch` begins in another store: the epoch before `epoch` that
    /// was last opened here.
    pub async fn origin_of(&self, epoch: i64) -> Result<i64> {
        if epoch <= FIRST {
            return Ok(FIRST);
        }
        let known = self.ownership().await?.and_then(|held| {
            let object = held.object();
            // A seed that takes over the shoot without the source's help claims the source's store.
            if object.epoch <= epoch {
                object.data_epoch(held.origin)
            } else {
                Some(object.epoch)
            }
        });
        match known {
            Some(own) if own >= epoch => Err(Error::new(
                Class::OtherEpoch,
                format!(
                    "the source {} was taken over in ownership epoch {own}, so it does not hold what epoch {epoch} begins with",
                    self.root
                ),
            )),
            Some(own) => Ok(own),
            None => Ok(newest_below(&self.everything().await?, epoch)),
        }
    }

    /// The epochs of this store that an epoch continues, the newest first. Only `ownership.json` of this
    /// store states that. An older history may be a leftover of a residency from which the shoot moved
    /// elsewhere.
    pub async fn origins_before(&self, origin: i64) -> Result<Vec<i64>> {
        let Some(held) = self.ownership().await? else {
            return Ok(Vec::new());
        };
        let mut before = match held.object().mark {
            Mark::Owned | Mark::Sealed if held.epoch == origin => held.origin.into_iter().collect(),
            Mark::Claimed if held.origin == Some(origin) => Vec::new(),
            _ => return Ok(Vec::new()),
        };
        before.extend(held.former_origins);
        before.retain(|former| *former < origin);
        Ok(before)
    }

    /// Reports the statements of `ownership.json` about this epoch. Fails if the store belongs to a later
    /// epoch, because the shoot continues in a later residency.
    pub async fn own_epoch(&self) -> Result<OwnEpoch> {
        let Some(found) = self.ownership().await? else {
            return Ok(OwnEpoch::default());
        };
        let OwnershipObject { epoch: own, mark } = found.object();
        match own.cmp(&self.epoch) {
            Ordering::Greater => Err(Error::new(
                Class::OtherEpoch,
                format!(
                    "{}/{OWNERSHIP} says ownership epoch {own}, and this etcd is of epoch {}: the shoot went on elsewhere, so \
                     that this etcd must not serve. Delete its Etcd; its volume may be kept",
                    self.root, self.epoch
                ),
            )),
            Ordering::Equal => Ok(OwnEpoch {
                is_sealed: mark == Mark::Sealed,
                origin: found
                    .origin
                    .filter(|origin| mark == Mark::Owned && *origin < self.epoch),
            }),
            Ordering::Less => Ok(OwnEpoch::default()),
        }
    }

    /// The chain that was recorded for an epoch; the first epoch begins without a chain.
    pub async fn recorded(&self, epoch: i64) -> Result<Option<Recorded>> {
        if epoch <= FIRST {
            return Ok(None);
        }
        self.json(&self.chain_path(epoch)).await
    }

    /// Records a chain for the store's epoch. A chain that is already recorded wins, and is returned.
    pub async fn record(&self, chain: Recorded) -> Result<Recorded> {
        let path = self.chain_path(chain.epoch);
        let content =
            serde_json::to_vec(&chain).map_err(|e| Error::new(Class::Configuration, e.to_string()))?;
        let client = self.client()?;
        match create_object(client.as_ref(), &path, PutPayload::from(content)).await {
            Ok(_) => Ok(chain),
            // The chain of this call may count only while the record of the chain exists.
            Err(object_store::Error::AlreadyExists { .. }) => self.json(&path).await?.ok_or_else(|| {
                let gone = format!("{path} was removed while it was read, so that no chain is recorded");
                Error::new(Class::Store, gone)
            }),
            Err(e) => Err(Error::store(&format!("writing {path}"), &e)),
        }
    }

    fn chain_path(&self, epoch: i64) -> Path {
        self.root.clone().join(CHAINS).join(format!("{epoch}.json"))
    }

    async fn json<T: serde::de::DeserializeOwned>(&self, path: &Path) -> Result<Option<T>> {
        let failed = |e: &object_store::Error| Error::store(&format!("reading {path}"), e);
        let found = match self.client()?.get(path).await {
            Ok(found) => found.bytes().await.map_err(|e| failed(&e))?,
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            Err(e) => return Err(failed(&e)),
        };
        serde_json::from_slice(&found).map(Some).map_err(|e| {
            let what = format!("{path} cannot be understood ({e}); put the right content back");
            Error::new(Class::SnapshotCorrupt, what)
        })
    }

    /// The path of the mark that assigns a snapshot to an epoch; the first epoch needs no mark.
    pub(super) fn mark(&self, snapshot: &Snapshot, epoch: i64) -> Option<Path> {
        let folder = self.root.clone().join(EPOCHS).join(epoch.to_string());
        (epoch > FIRST).then(|| folder.join(snapshot.to_string()))
    }

    /// Sets the epochs of a listing. The listing must be older than the marks that this call reads, because a
    /// mark is written before its snapshot.
    pub(super) async fn read_epochs(&self, listing: &mut [Snapshot]) -> Result<()> {
        let folder = self.root.clone().join(EPOCHS);
        let mut marks = HashMap::new();
        for object in self.connection()?.names.below(&folder).await? {
            // Marks that a user wrote beside those of the project have no effect.
            if let Some((epoch, name)) = object.name.split_once('/')
                && let Ok(epoch) = epoch.parse::<i64>()
            {
                // Of two marks of a snapshot the later epoch counts: an older history must not claim newer
                // snapshots.
                let known = marks.entry(name.to_owned()).or_insert(epoch);
                *known = epoch.max(*known);
            }
        }
        for snapshot in listing {
            snapshot.epoch = marks.get(&snapshot.to_string()).copied().unwrap_or(FIRST);
        }
        Ok(())
    }
}
