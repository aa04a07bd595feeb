//! Writes an object: a small object in a single request, a larger object in parts, visible only once
//! complete.

use crate::error::{Error, Result};
use bytes::{Bytes, BytesMut};
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, path::Path};
use std::sync::Arc;
use tokio::task::JoinSet;

/// Size of a part: the smallest that S3 allows. Memory holds this size times the number of parts in transfer.
const PART: usize = 5 * 1024 * 1024;
/// A part is collected in pieces of this size, a divisor of the part size. A single large buffer would be
/// copied and doubled while it grows.
const PIECE: usize = 256 * 1024;
/// Parts in transfer while the next part is filled.
const PARALLEL: usize = 2;

/// An object during its upload. After a drop or abort the object never appears, and the store releases its
/// parts.
pub struct Upload {
    client: Arc<dyn ObjectStore>,
    path: Path,
    /// Object that must exist before this object becomes visible.
    mark: Option<Path>,
    pieces: Vec<Bytes>,
    piece: BytesMut,
    filled: usize,
    parts: Option<Box<dyn MultipartUpload>>,
    on_their_way: JoinSet<object_store::Result<()>>,
    length: u64,
}

impl Upload {
    pub(super) fn new(client: Arc<dyn ObjectStore>, path: Path, mark: Option<Path>) -> Self {
        Self {
            client,
            path,
            mark,
            pieces: Vec::new(),
            piece: BytesMut::new(),
            filled: 0,
            parts: None,
            on_their_way: JoinSet::new(),
            length: 0,
        }
    }

    fn failed(&self, error: &object_store::Error) -> Error {
        Error::store(&format!("writing {}", self.path), error)
    }

    /// Adds bytes; waits while `PARALLEL` parts are in transfer.
    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<()> {
        self.length += bytes.len() as u64;
        while !bytes.is_empty() {
            let (now, later) = bytes.split_at(bytes.len().min(PIECE - self.piece.len()));
            self.piece.extend_from_slice(now);
            self.filled += now.len();
            bytes = later;
            if self.piece.len() == PIECE {
                let next = BytesMut::with_capacity(PIECE);
                self.pieces
                    .push(std::mem::replace(&mut self.piece, next).freeze());
            }
            if self.filled == PART {
                self.send_part().await?;
            }
        }
        Ok(())
    }

    /// The collected bytes, as the body of a request.
    fn take_part(&mut self) -> PutPayload {
        self.filled = 0;
        self.pieces.push(std::mem::take(&mut self.piece).freeze());
        std::mem::take(&mut self.pieces)
            .into_iter()
            .filter(|piece| !piece.is_empty())
            .collect()
    }

    async fn send_part(&mut self) -> Result<()> {
        if self.parts.is_none() {
            let begun = self.client.put_multipart(&self.path).await;
            self.parts = Some(begun.map_err(|e| self.failed(&e))?);
        }
        while self.on_their_way.len() >= PARALLEL {
            self.wait_for_part().await?;
        }
        let part = self.take_part();
        if let Some(parts) = &mut self.parts {
            self.on_their_way.spawn(parts.put_part(part));
        }
        Ok(())
    }

    async fn wait_for_part(&mut self) -> Result<()> {
        match self.on_their_way.join_next().await {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(e))) => Err(self.failed(&e)),
            Some(Err(e)) => Err(self.failed(&object_store::Error::from(e))),
        }
    }

    /// Makes the object visible; returns its size.
    pub async fn complete(mut self) -> Result<u64> {
        match self.finish().await {
            Ok(()) => Ok(self.length),
            Err(e) => {
                self.abort().await;
                Err(e)
            }
        }
    }

    async fn finish(&mut self) -> Result<()> {
        if let Some(mark) = &self.mark {
            // A mark without an object does no harm; an object without its mark would belong to a different
            // history.
            let content = PutPayload::from(mark.to_string());
            self.client
                .put(mark, content)
                .await
                .map_err(|e| Error::store(&format!("writing {mark}"), &e))?;
        }
        if self.parts.is_none() {
            let payload = self.take_part();
            return self
                .client
                .put(&self.path, payload)
                .await
                .map(drop)
                .map_err(|e| self.failed(&e));
        }
        if self.filled > 0 {
            self.send_part().await?;
        }
        while !self.on_their_way.is_empty() {
            self.wait_for_part().await?;
        }
        let Some(parts) = &mut self.parts else {
            return Ok(());
        };
        let completed = parts.complete().await;
        completed.map_err(|e| self.failed(&e))?;
        self.parts = None;
        Ok(())
    }

    /// Gives the parts back. A failure here leaves parts that only the bucket's life cycle rule removes.
    pub async fn abort(mut self) {
        self.on_their_way.shutdown().await;
        if let Some(parts) = self.parts.take() {
            give_back(parts, self.path.clone()).await;
        }
    }
}

impl Drop for Upload {
    /// A final snapshot may drop a running upload at any moment.
    #[allow(clippy::disallowed_methods)] // what goes on is only the removal of what this upload has left
    fn drop(&mut self) {
        self.on_their_way.abort_all();
        if let (Some(parts), Ok(runtime)) = (self.parts.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(give_back(parts, self.path.clone()));
        }
    }
}

async fn give_back(mut parts: Box<dyn MultipartUpload>, path: Path) {
    if let Err(error) = parts.abort().await {
        tracing::warn!(%path, %error, "an unfinished upload could not be aborted");
    }
}
