//! Collects events into the content of a delta snapshot; each event is hashed and packed when it arrives.

use super::Entry;
use crate::compression::{Compression, Packer};
use crate::error::{Class, Error, Result};
use crate::snapshot_name::{Kind, Snapshot};
use sha2::{Digest, Sha256};

/// An unfinished delta snapshot; memory holds only packed bytes.
pub struct DeltaWriter {
    compression: Compression,
    packer: Packer,
    hasher: Sha256,
    start_revision: i64,
    last_revision: Option<i64>,
    length: usize,
}

impl DeltaWriter {
    /// A delta that begins at `start_revision`, the revision after the previous snapshot.
    pub fn new(compression: Compression, start_revision: i64) -> Result<Self> {
        Ok(Self {
            compression,
            packer: compression.packer()?,
            hasher: Sha256::new(),
            start_revision,
            last_revision: None,
            length: 0,
        })
    }

    fn write(&mut self, content: &[u8]) -> Result<()> {
        self.hasher.update(content);
        self.length += content.len();
        self.packer.write(content)
    }

    /// Adds an event; the events must come in the order of their revisions.
    pub fn push(&mut self, entry: &Entry) -> Result<()> {
        let json = serde_json::to_vec(entry).map_err(|e| {
            Error::new(
                Class::Etcd,
                format!("an event of etcd cannot be written down: {e}"),
            )
        })?;
        self.write(if self.last_revision.is_none() { b"[" } else { b"," })?;
        self.write(&json)?;
        self.last_revision = Some(entry.event.kv.mod_revision);
        Ok(())
    }

    /// Bytes of content so far, before packing.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the delta holds no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.last_revision.is_none()
    }

    /// Last revision inside; for an empty delta the revision before the first.
    #[must_use]
    pub fn reached(&self) -> i64 {
        self.last_revision.unwrap_or(self.start_revision - 1)
    }

    /// Seals the content. `None` without events.
    pub fn finish(mut self) -> Result<Option<(Snapshot, Vec<u8>)>> {
        let Some(last_revision) = self.last_revision else {
            return Ok(None);
        };
        self.write(b"]")?;
        let hash = self.hasher.finalize_reset();
        self.packer.write(&hash)?;
        let packed = self.packer.finish()?;
        let mut snapshot = Snapshot::new(
            Kind::Delta,
            (self.start_revision, last_revision),
            self.compression,
            false,
        );
        snapshot.size = packed.len() as u64;
        Ok(Some((snapshot, packed)))
    }
}
