//! `sealed.json`, beside the folder of the snapshots: the revision of etcd at which an ownership epoch was
//! sealed.
//!
//! The process beside etcd writes the note after the seal on its volume: the gate in front of etcd never
//! opens again, so that etcd has acknowledged no change after this revision to any client. A destination that
//! takes over the shoot reads from the note whether the chain in the bucket is complete. A changing `beat`
//! shows that the source is still storing data.

use crate::error::{Class, Error, Result};
use crate::store::Store;
use serde::{Deserialize, Serialize};

const NOTE: &str = "sealed.json";

/// The note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SealNote {
    /// The ownership epoch that was sealed.
    pub epoch: i64,
    /// Revision of etcd after the seal. etcd has acknowledged no later revision to a client.
    pub revision: i64,
    /// Rises while the source is storing data.
    #[serde(default)]
    pub beat: u64,
}

impl SealNote {
    /// The note in a store. An invalid note is treated as missing: then no chain in the store counts as
    /// complete.
    pub async fn read(store: &Store) -> Result<Option<Self>> {
        let Some(content) = store.note(NOTE).await? else {
            return Ok(None);
        };
        let note = serde_json::from_slice(&content);
        if let Err(error) = &note {
            tracing::warn!(%error, "{NOTE} beside the folder {} cannot be read and is left aside", store.prefix());
        }
        Ok(note.ok())
    }

    /// Writes the note. The note of a later epoch stays: a process of an epoch that is over may still run.
    pub async fn write(&self, store: &Store) -> Result<()> {
        let content = serde_json::to_vec(self)
            .map_err(|e| Error::new(Class::Configuration, format!("cannot write {NOTE}: {e}")))?;
        let is_later =
            |found: &[u8]| serde_json::from_slice::<Self>(found).is_ok_and(|found| found.epoch > self.epoch);
        if !store.replace_note(NOTE, content, is_later).await? {
            tracing::debug!(epoch = self.epoch, "{NOTE} is of a later epoch and stays");
        }
        Ok(())
    }
}
