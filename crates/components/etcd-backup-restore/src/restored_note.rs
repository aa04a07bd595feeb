//! `restored.json`, beside the folder of the snapshots: the revision with which etcd continued after the last
//! restore in an ownership epoch.
//!
//! A snapshot shows that etcd has served in an epoch. Until the first snapshot of the epoch, and after a
//! restore that skips revisions, only this note shows that. Without the note a second restore of the same
//! chain would give the revisions of the first restore again.

use crate::error::{Class, Error, Result};
use crate::store::Store;
use serde::{Deserialize, Serialize};

const NOTE: &str = "restored.json";

/// The note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RestoredNote {
    /// The ownership epoch in which etcd was restored.
    pub(crate) epoch: i64,
    /// The revision with which etcd continued; 0 where etcd has the volume of an earlier epoch.
    pub(crate) revision: i64,
}

impl RestoredNote {
    /// The note of the present epoch. An unreadable note is an error: without the note revisions might be
    /// given twice.
    pub(crate) async fn read(store: &Store) -> Result<Option<Self>> {
        let Some(content) = store.note(NOTE).await? else {
            return Ok(None);
        };
        let note: Self = serde_json::from_slice(&content).map_err(|e| {
            let place = store.prefix();
            let what = format!(
                "{NOTE} beside the folder {place} cannot be understood ({e}); put the right content back, or delete {NOTE} if \
                 etcd has not been restored since the last snapshot. Nothing was changed"
            );
            Error::new(Class::SnapshotCorrupt, what)
        })?;
        Ok(Some(note).filter(|note| note.epoch == store.epoch()))
    }

    /// Writes the note. The note of a later epoch stays: a process of an epoch that is over may still run.
    pub(crate) async fn write(&self, store: &Store) -> Result<()> {
        let content = serde_json::to_vec(self)
            .map_err(|e| Error::new(Class::Configuration, format!("cannot write {NOTE}: {e}")))?;
        let is_later =
            |found: &[u8]| serde_json::from_slice::<Self>(found).is_ok_and(|found| found.epoch > self.epoch);
        store.replace_note(NOTE, content, is_later).await.map(drop)
    }
}
