//! The bucket: lists, reads and writes snapshots.
//!
//! Credentials come from a mounted Secret and are read again before each use, so that a rotated Secret takes
//! effect without a restart. An object appears under its name only as a whole: the stores' multipart uploads
//! are completed after the content was verified, or aborted.
//!
//! A store is opened for a single ownership epoch, and shows only the history of that epoch: its objects and
//! the objects of its recorded chain (`epoch`). Leftovers of other residencies of the shoot in the bucket are
//! hidden.

mod credentials;
mod epoch;
mod histories;
mod listing;
mod note;
mod ownership;
mod upload;

pub use credentials::{Credentials, Provider, StoreConfig};
pub use epoch::{FIRST, Recorded};
pub use histories::OwnEpoch;
pub use listing::Deletion;
pub use ownership::{Ownership, Sealing};
pub use upload::Upload;

use crate::error::{Class, Error, Result};
use crate::integrity::TrailerCheck;
use crate::snapshot_name::{LAYOUT, Snapshot};
use futures::{StreamExt, TryStreamExt};
use listing::Client;
use object_store::{ObjectStore, ObjectStoreExt, path::Path};
use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_util::io::StreamReader;

/// A location of snapshots: a bucket and a prefix in the bucket.
pub struct Store {
    config: StoreConfig,
    /// Folder of the snapshots and of the metadata beside them.
    root: Path,
    /// Folder of the snapshots.
    prefix: Path,
    epoch: i64,
    client: Mutex<Option<(Credentials, Arc<Client>)>>,
    /// Objects of the folder in the last listing that are not snapshots.
    foreign: AtomicUsize,
    /// Names that were left aside, where an object that cannot be read is no error.
    left_aside: Option<Mutex<BTreeSet<String>>>,
}

impl Store {
    /// Builds a store; sends no request.
    pub fn new(config: StoreConfig) -> Result<Self> {
        let folder = config.prefix.trim_matches('/');
        let root = Path::parse(folder).map_err(|e| {
            Error::new(
                Class::Configuration,
                format!("--store-prefix {folder:?} cannot be used: {e}"),
            )
        })?;
        Ok(Self {
            config,
            prefix: root.clone().join(LAYOUT),
            root,
            epoch: FIRST,
            client: Mutex::new(None),
            foreign: AtomicUsize::new(0),
            left_aside: None,
        })
    }

    /// Leaves aside objects that look like snapshots and cannot be read: for a source that may be dead. The
    /// caller must know the acknowledged revisions of the source from different evidence.
    #[must_use]
    pub fn leaving_aside(self) -> Self {
        Self {
            left_aside: Some(Mutex::default()),
            ..self
        }
    }

    /// The objects that were left aside so far.
    #[must_use]
    pub fn left_aside(&self) -> Vec<String> {
        let names = self.left_aside.iter();
        names
            .flat_map(|names| names.lock().unwrap_or_else(PoisonError::into_inner).clone())
            .collect()
    }

    fn leave_aside(&self, name: &str, error: Error) -> Result<()> {
        let Some(names) = &self.left_aside else {
            return Err(error);
        };
        // A copy lists again and again.
        let mut names = names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.insert(name.to_owned()) {
            tracing::warn!(%error, "left aside");
        }
        Ok(())
    }

    /// The same location, opened for an ownership epoch. The default is the first epoch.
    #[must_use]
    pub fn of_epoch(self, epoch: i64) -> Self {
        Self { epoch, ..self }
    }

    /// The folder of the snapshots inside the bucket.
    #[must_use]
    pub fn prefix(&self) -> String {
        self.prefix.to_string()
    }

    fn client(&self) -> Result<Arc<dyn ObjectStore>> {
        Ok(Arc::clone(&self.connection()?.objects))
    }

    fn connection(&self) -> Result<Arc<Client>> {
        // The permit is checked again when each request leaves; a folder as store has no requests.
        self.config.permit.check()?;
        let credentials = self.config.credentials()?;
        let mut cached = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, client)) = cached.as_ref()
            && *known == credentials
        {
            return Ok(client.clone());
        }
        let client = Arc::new(self.config.connect(&credentials)?);
        *cached = Some((credentials, client.clone()));
        Ok(client)
    }

    fn path(&self, snapshot: &Snapshot) -> Path {
        self.prefix.clone().join(snapshot.to_string())
    }

    /// Every snapshot of the store, of any epoch. Objects that cannot be snapshots are skipped and reported.
    /// An unreadable object directly in the folder that looks like a snapshot is an error that names the
    /// object. With [`Self::leaving_aside`] the object is left aside instead.
    pub async fn everything(&self) -> Result<Vec<Snapshot>> {
        let (mut listing, mut foreign) = (Vec::new(), Vec::new());
        for object in self.connection()?.names.below(&self.prefix).await? {
            // No object in a deeper folder is a snapshot.
            let is_inside = !object.name.contains('/');
            match is_inside.then(|| Snapshot::read(&object.name)).transpose() {
                Ok(Some(Some(mut snapshot))) => {
                    snapshot.size = object.size;
                    listing.push(snapshot);
                }
                Ok(_) => foreign.push(object.name),
                Err(error) => self.leave_aside(&object.name, error)?,
            }
        }
        self.report_foreign(&foreign);
        self.read_epochs(&mut listing).await?;
        Ok(listing)
    }

    /// Reports objects that are not snapshots, whenever their number changes: listings are frequent.
    fn report_foreign(&self, names: &[String]) {
        let count = names.len();
        let Some(example) = names.first() else {
            self.foreign.store(0, Ordering::Relaxed);
            return;
        };
        if self.foreign.swap(count, Ordering::Relaxed) != count {
            tracing::warn!(
                folder = %self.prefix,
                count,
                example = %example.escape_debug(),
                "the folder holds objects that are not snapshots; they are skipped, and may be removed"
            );
        }
    }

    /// The stored bytes of an object.
    pub async fn open(&self, snapshot: &Snapshot) -> Result<impl AsyncRead + Send + Unpin + use<>> {
        let path = self.path(snapshot);
        let found = self
            .client()?
            .get(&path)
            .await
            .map_err(|e| Error::store(&format!("reading {snapshot}"), &e))?;
        Ok(StreamReader::new(
            found.into_stream().map_err(io::Error::other).boxed(),
        ))
    }

    /// Streams the unpacked content into `into` and checks its hash. On an error the caller must not use the
    /// written bytes.
    pub async fn read_verified(
        &self,
        snapshot: &Snapshot,
        into: &mut (impl AsyncWrite + Unpin),
    ) -> Result<u64> {
        let packed = tokio::io::BufReader::with_capacity(64 * 1024, self.open(snapshot).await?);
        check_stream(snapshot, snapshot.compression.unpack(packed), into).await
    }

    /// Begins an upload under the snapshot's name. The object gets the snapshot's epoch, or the store's epoch
    /// if the snapshot has none.
    pub fn upload(&self, snapshot: &Snapshot) -> Result<Upload> {
        let epoch = if snapshot.epoch == 0 {
            self.epoch
        } else {
            snapshot.epoch
        };
        let mark = self.mark(snapshot, epoch);
        Ok(Upload::new(self.client()?, self.path(snapshot), mark))
    }

    /// Size of an object, `None` if the object does not exist.
    pub async fn size(&self, snapshot: &Snapshot) -> Result<Option<u64>> {
        match self.client()?.head(&self.path(snapshot)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(e) => Err(Error::store(&format!("looking for {snapshot}"), &e)),
        }
    }

    /// Removes an object with all versions of the object. A missing object is a success.
    pub async fn delete(&self, snapshot: &Snapshot) -> Result<Deletion> {
        // The object first: without its mark it would belong to the first epoch.
        for path in [Some(self.path(snapshot)), self.mark(snapshot, snapshot.epoch)]
            .into_iter()
            .flatten()
        {
            let deleted = self.connection()?.names.delete(&path).await?;
            if deleted != Deletion::Deleted {
                return Ok(deleted);
            }
        }
        Ok(Deletion::Deleted)
    }

    /// Takes an object out of every listing, also where a retention protects the versions of the object.
    pub async fn hide(&self, snapshot: &Snapshot) -> Result<()> {
        if self.delete(snapshot).await? == Deletion::Deleted {
            return Ok(());
        }
        let path = self.path(snapshot);
        match self.client()?.delete(&path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(e) => Err(Error::store(&format!("deleting {path}"), &e)),
        }
    }
}

/// Copies an unpacked stream and checks the hash at its end.
pub async fn check_stream(
    snapshot: &Snapshot,
    mut content: impl AsyncRead + Unpin,
    into: &mut (impl AsyncWrite + Unpin),
) -> Result<u64> {
    let (mut check, mut buffer) = (TrailerCheck::default(), vec![0; 64 * 1024]);
    loop {
        let read = content
            .read(&mut buffer)
            .await
            .map_err(|e| reading(snapshot, &e))?;
        if read == 0 {
            break;
        }
        check.update(&buffer[..read]);
        let written = into.write_all(&buffer[..read]).await;
        written.map_err(|e| Error::new(Class::DataDirectory, format!("cannot keep {snapshot}: {e}")))?;
    }
    let flushed = into.flush().await;
    flushed.map_err(|e| Error::new(Class::DataDirectory, format!("cannot keep {snapshot}: {e}")))?;
    check.finish().map_err(|what| corrupt(snapshot, &what))
}

/// An object that must not be trusted.
#[must_use]
pub fn corrupt(snapshot: &Snapshot, what: &str) -> Error {
    Error::new(
        Class::SnapshotCorrupt,
        format!(
            "{snapshot} cannot be trusted: {what}; put an intact copy of the object back, nothing was changed"
        ),
    )
}

/// Tells a store that stopped answering from an object that is broken.
pub(crate) fn reading(snapshot: &Snapshot, error: &io::Error) -> Error {
    let cause = error
        .get_ref()
        .and_then(|e| e.downcast_ref::<object_store::Error>());
    match cause {
        Some(cause) => Error::store(&format!("reading {snapshot}"), cause),
        None => corrupt(snapshot, &format!("it does not unpack ({error})")),
    }
}
