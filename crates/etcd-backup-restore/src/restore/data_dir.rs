//! etcd's data directory: is it sound, and how a restored one takes its place.

use super::bolt;
use super::tools::Tools;
use crate::error::{Class, Error, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// What was found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// No data at all.
    Missing,
    /// Usable, with the revision in the database file.
    Sound(i64),
    /// Not usable, and why.
    Broken(String),
}

/// The database inside a data directory.
pub(super) fn database(data_dir: &Path) -> PathBuf {
    data_dir.join("member/snap/db")
}

/// Judges a data directory: it needs a write-ahead log that begins with a record, and a database that is as long as its
/// head says and whose pages `etcdutl` finds consistent. etcd itself checks the rest of the log when it reads it.
pub(super) async fn inspect(data_dir: &Path, tools: &Tools) -> Result<Condition> {
    if entries(data_dir)?.is_empty() {
        return Ok(Condition::Missing);
    }
    let wal = data_dir.join("member/wal");
    let segments: Vec<_> = entries(&wal)?
        .into_iter()
        .filter(|file| file.extension().is_some_and(|e| e == "wal"))
        .collect();
    if segments.is_empty() {
        return Ok(Condition::Broken(format!(
            "{} holds no write-ahead log",
            wal.display()
        )));
    }
    if let Some(file) = segments.iter().find(|file| !begins_with_a_record(file)) {
        return Ok(Condition::Broken(format!(
            "{} is not a write-ahead log",
            file.display()
        )));
    }
    let database = database(data_dir);
    match fs::metadata(&database) {
        Ok(found) if found.len() > 0 => {}
        _ => {
            return Ok(Condition::Broken(format!(
                "{} is missing or empty",
                database.display()
            )));
        }
    }
    if let Some(fault) = bolt::fault(&database).map_err(|e| Error::file("read", &database, &e))? {
        return Ok(Condition::Broken(format!("{}: {fault}", database.display())));
    }
    match tools.revision(&database).await {
        Ok(revision) => Ok(Condition::Sound(revision)),
        Err(e) if e.class == Class::SnapshotCorrupt => Ok(Condition::Broken(e.message)),
        Err(e) => Err(e),
    }
}

/// A record begins with its length in eight bytes, of which the upper ones hold padding: never all zero at the start.
fn begins_with_a_record(file: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; 8];
    fs::File::open(file)
        .and_then(|mut f| f.read_exact(&mut start))
        .is_ok()
        && start != [0; 8]
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Ok(found) => found
            .map(|entry| entry.map(|e| e.path()))
            .collect::<std::io::Result<_>>(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(e) => Err(e),
    }
    .map_err(|e| Error::file("read", folder, &e))
}

/// The folder beside the data directory in which a restore is built. It is on the same volume, so that the result can
/// be renamed, and it is gone when this is dropped.
pub(super) struct WorkDir {
    folder: PathBuf,
    result: PathBuf,
    replaced: PathBuf,
}

impl WorkDir {
    /// Names it and removes what an interrupted run left.
    pub(super) fn new(data_dir: &Path) -> Result<Self> {
        let beside = |end: &str| {
            let mut name = data_dir.file_name().unwrap_or_default().to_owned();
            name.push(end);
            data_dir.with_file_name(name)
        };
        let folder = beside(".restoring");
        let work = Self {
            result: folder.join("result"),
            folder,
            replaced: beside(".replaced"),
        };
        remove(&work.folder)?;
        // Between the two renames of a swap there is no data directory; what it was is not wanted back.
        remove(&work.replaced)?;
        Ok(work)
    }

    /// Creates it.
    pub(super) fn begin(&self) -> Result<PathBuf> {
        fs::create_dir_all(&self.folder).map_err(|e| Error::file("create", &self.folder, &e))?;
        Ok(self.folder.clone())
    }

    pub(super) fn result(&self) -> &Path {
        &self.result
    }

    pub(super) fn replaced(&self) -> &Path {
        &self.replaced
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.folder) {
            tracing::warn!(%error, "the work directory stays until the next start");
        }
    }
}

/// Removes a file or a folder; one that is gone already is fine.
pub(super) fn remove(path: &Path) -> Result<()> {
    let removed = if path.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    };
    match removed {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::file("remove", path, &e)),
        _ => Ok(()),
    }
}

/// Copies the files of a data directory.
pub(super) fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to).map_err(|e| Error::file("create", to, &e))?;
    for entry in entries(from)? {
        let target = to.join(entry.file_name().unwrap_or_default());
        if entry.is_dir() {
            copy(&entry, &target)?;
        } else {
            fs::copy(&entry, &target).map_err(|e| Error::file("copy", &entry, &e))?;
        }
    }
    Ok(())
}

/// Brings a folder and everything below it to the disk.
pub(super) fn sync(path: &Path) -> Result<()> {
    if path.is_dir() {
        entries(path)?.iter().try_for_each(|entry| sync(entry))?;
    }
    fs::File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|e| Error::file("sync", path, &e))
}

/// Puts a finished data directory in the place of the old one.
pub(super) fn swap(result: &Path, data_dir: &Path, replaced: &Path) -> Result<()> {
    let moved = |from: &Path, to: &Path| {
        fs::rename(from, to).map_err(|e| {
            let hint =
                "the data directory must lie below the mount point of its volume, not be the mount point";
            Error::new(
                Class::DataDirectory,
                format!(
                    "cannot rename {} to {}: {e}; {hint}",
                    from.display(),
                    to.display()
                ),
            )
        })
    };
    if data_dir.exists() {
        moved(data_dir, replaced)?;
    }
    if let Err(e) = moved(result, data_dir) {
        if replaced.exists() {
            moved(replaced, data_dir)?;
        }
        return Err(e);
    }
    if let Some(parent) = data_dir.parent() {
        fs::File::open(parent)
            .and_then(|f| f.sync_all())
            .map_err(|e| Error::file("sync", parent, &e))?;
    }
    remove(replaced)
}
