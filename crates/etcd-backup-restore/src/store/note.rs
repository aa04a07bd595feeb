//! Small objects beside the folder of the snapshots. Nothing that lists or copies snapshots sees them.

use super::Store;
use crate::error::{Error, Result};
use bytes::Bytes;
use object_store::{ObjectStoreExt, PutPayload, path::Path};

impl Store {
    fn note_path(&self, name: &str) -> Path {
        self.root.clone().join(name)
    }

    /// Content of a note; `None` where there is none.
    pub async fn note(&self, name: &str) -> Result<Option<Bytes>> {
        let failed = |e: object_store::Error| Error::store(&format!("reading {name}"), &e);
        match self.client()?.get(&self.note_path(name)).await {
            Ok(found) => found.bytes().await.map(Some).map_err(failed),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(e) => Err(failed(e)),
        }
    }

    /// Writes a note.
    pub async fn put_note(&self, name: &str, content: Vec<u8>) -> Result<()> {
        let put = self
            .client()?
            .put(&self.note_path(name), PutPayload::from(content))
            .await;
        put.map(drop)
            .map_err(|e| Error::store(&format!("writing {name}"), &e))
    }

    /// Removes a note; one that is gone already is fine.
    pub async fn delete_note(&self, name: &str) -> Result<()> {
        match self.client()?.delete(&self.note_path(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(Error::store(&format!("removing {name}"), &e)),
        }
    }
}
