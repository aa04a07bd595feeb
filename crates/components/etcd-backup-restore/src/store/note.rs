//! Small objects beside the folder of the snapshots. Listings and copies of snapshots do not include these
//! objects.

use super::Store;
use crate::error::{Class, Error, Result};
use bytes::Bytes;
use object_store::{
    Error as StoreError, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, UpdateVersion,
    path::Path,
};
use permit_object_store::create_object;

/// How often a note is replaced again at once after a concurrent write of another process.
const TRIES: u32 = 3;

impl Store {
    fn note_path(&self, name: &str) -> Path {
        self.root.clone().join(name)
    }

    /// Content of a note; `None` if the note does not exist.
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

    /// Writes a note unless `is_newer` says that the note in the store must stay. Returns whether the note
    /// was written. The store refuses the write if another process wrote the note in between; a folder as
    /// store has no such condition.
    pub async fn replace_note(
        &self,
        name: &str,
        content: Vec<u8>,
        is_newer: impl Fn(&[u8]) -> bool,
    ) -> Result<bool> {
        let path = self.note_path(name);
        for _ in 0..TRIES {
            let payload = PutPayload::from(content.clone());
            let version = match self.client()?.get(&path).await {
                Err(StoreError::NotFound { .. }) => None,
                Err(e) => return Err(Error::store(&format!("reading {name}"), &e)),
                Ok(found) => {
                    let version = UpdateVersion {
                        e_tag: found.meta.e_tag.clone(),
                        version: found.meta.version.clone(),
                    };
                    let found = found.bytes().await;
                    let found = found.map_err(|e| Error::store(&format!("reading {name}"), &e))?;
                    if is_newer(&found) {
                        return Ok(false);
                    }
                    Some(version)
                }
            };
            let client = self.client()?;
            let written = match version {
                None => create_object(client.as_ref(), &path, payload).await,
                Some(version) => {
                    let options = PutOptions {
                        mode: PutMode::Update(version),
                        ..PutOptions::default()
                    };
                    client.put_opts(&path, payload, options).await
                }
            };
            match written {
                Ok(_) => return Ok(true),
                Err(StoreError::Precondition { .. } | StoreError::AlreadyExists { .. }) => {}
                Err(StoreError::NotImplemented { .. }) => {
                    return self.put_note(name, content).await.map(|()| true);
                }
                Err(e) => return Err(Error::store(&format!("writing {name}"), &e)),
            }
        }
        Err(Error::new(
            Class::Store,
            format!("{name} was not written: another process wrote it in between {TRIES} times"),
        ))
    }

    /// Removes a note; a missing note is not an error.
    pub async fn delete_note(&self, name: &str) -> Result<()> {
        match self.client()?.delete(&self.note_path(name)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(Error::store(&format!("removing {name}"), &e)),
        }
    }
}
