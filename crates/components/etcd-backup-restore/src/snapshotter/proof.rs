//! The proof of a final snapshot, and its record in the store.
//!
//! `<prefix>/finished.json`, beside the folder of the snapshots, states that this store's etcd is at its end.
//! Unlike the `.final` in a name this file is never copied. So a process that starts on a copy does not begin
//! in the finished state. The file counts only for its epoch.

use crate::chain;
use crate::error::{Class, Error, Result};
use crate::integrity::Fingerprint;
use crate::snapshot_name::Snapshot;
use crate::store::{Store, reading};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;

/// Name of the record.
pub(super) const RECORD: &str = "finished.json";

/// A final snapshot that was read back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Proof {
    /// Name of the final snapshot.
    pub snapshot: String,
    /// Epoch of the ownership that the snapshot ends.
    pub epoch: i64,
    /// The snapshot holds every change up to this revision.
    pub last_revision: i64,
    /// Revision of etcd after the snapshot was read back: the same as `last_revision`, or later if leases
    /// expired after the epoch was sealed.
    pub etcd_revision: i64,
    /// Hash of the object as it is stored, in hex.
    pub sha256: String,
    /// The snapshot was taken after the epoch was sealed: clients could not write to etcd any more, and there
    /// is no further final snapshot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sealed: bool,
}

impl Proof {
    /// Whether a listing still ends with the snapshot, in the epoch of this process, and etcd was not written
    /// to since.
    pub(super) fn is_valid_for(&self, listing: &[Snapshot], revision: i64, epoch: i64) -> bool {
        let is_end = chain::final_snapshot(listing).is_some_and(|end| end.to_string() == self.snapshot);
        is_end && self.epoch == epoch && self.last_revision == revision
    }

    /// The record in the store, if there is one.
    pub(crate) async fn recorded(store: &Store) -> Result<Option<Self>> {
        let Some(content) = store.note(RECORD).await? else {
            return Ok(None);
        };
        serde_json::from_slice(&content).map(Some).map_err(|e| {
            Error::new(
                Class::SnapshotUnparsable,
                format!(
                    "{RECORD} beside the folder {} cannot be read ({e}); remove it",
                    store.prefix()
                ),
            )
        })
    }

    /// Writes the record to the store.
    pub(super) async fn record(&self, store: &Store) -> Result<()> {
        let content = serde_json::to_vec(self)
            .map_err(|e| Error::new(Class::Configuration, format!("cannot write {RECORD}: {e}")))?;
        store.put_note(RECORD, content).await
    }

    /// Removes the record.
    pub(super) async fn forget(store: &Store) -> Result<()> {
        store.delete_note(RECORD).await
    }
}

/// Reads an object back and returns the hash of the stored bytes.
pub(crate) async fn fingerprint(store: &Store, snapshot: &Snapshot) -> Result<String> {
    let mut object = store.open(snapshot).await?;
    let (mut hash, mut buffer) = (Fingerprint::default(), vec![0; 64 * 1024]);
    loop {
        let read = object
            .read(&mut buffer)
            .await
            .map_err(|e| reading(snapshot, &e))?;
        if read == 0 {
            return Ok(hash.hex());
        }
        hash.update(&buffer[..read]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::tests::{delta, full, last};

    #[test]
    fn a_proof_counts_for_its_epoch_and_as_long_as_nothing_was_written() {
        let proof = Proof {
            snapshot: last(9, 2).to_string(),
            epoch: 3,
            last_revision: 9,
            etcd_revision: 9,
            sha256: String::new(),
            sealed: false,
        };
        assert!(proof.is_valid_for(&[full(5, 1), last(9, 2), full(9, 3)], 9, 3));
        assert!(
            !proof.is_valid_for(&[full(5, 1), last(9, 2)], 9, 4),
            "of another epoch"
        );
        assert!(
            !proof.is_valid_for(&[full(5, 1), last(9, 2)], 10, 3),
            "etcd went on"
        );
        assert!(
            !proof.is_valid_for(&[last(9, 2), delta(10, 11, 3)], 11, 3),
            "the store went on"
        );
        assert!(!proof.is_valid_for(&[full(5, 1)], 9, 3), "the snapshot is gone");
    }
}
