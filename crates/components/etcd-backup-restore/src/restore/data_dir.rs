//! etcd's data directory: checks the directory, and swaps in a restored directory.

use super::bolt;
use super::tools::Tools;
use crate::error::{Class, Error, Result};
use crate::store::FIRST;
use ownership::keeps_data;
use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// The state of the data directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// No data at all.
    Missing,
    /// Usable, with the revision in the database file.
    Sound(i64),
    /// Not usable, with the reason.
    Broken(String),
    /// Data of an earlier ownership epoch: a different history, sound or not.
    OfEpoch(i64),
}

/// The file in a data directory that names the ownership epoch of the data. A directory without this file
/// belongs to the first epoch. etcd ignores the file.
const MARK: &str = "ownership-epoch";
/// The name of the same file while `mark` writes it.
const MARK_BEGUN: &str = "ownership-epoch.new";

/// The data of etcd inside a data directory, without the epoch mark.
pub(super) fn member(data_dir: &Path) -> PathBuf {
    data_dir.join("member")
}

/// The database inside a data directory.
pub(super) fn database(data_dir: &Path) -> PathBuf {
    data_dir.join("member/snap/db")
}

/// Inspects a data directory. The write-ahead log must begin with a record. The database must be as long as
/// its head says, and `etcdutl` must find its pages consistent. etcd itself checks the rest of the log at its
/// start.
pub(super) async fn inspect(data_dir: &Path, tools: &Tools, epoch: i64) -> Result<Condition> {
    if is_missing(data_dir)? {
        return Ok(Condition::Missing);
    }
    match read_mark(data_dir)? {
        own if own > epoch => return Err(later_epoch(data_dir, own, epoch)),
        own if !keeps_data(epoch, None, own) => return Ok(Condition::OfEpoch(own)),
        _ => {}
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

/// Whether etcd has no data. A start that ended between the mark and etcd's first file leaves only the mark.
pub(super) fn is_missing(data_dir: &Path) -> Result<bool> {
    let marks = [data_dir.join(MARK), data_dir.join(MARK_BEGUN)];
    Ok(entries(data_dir)?.iter().all(|entry| marks.contains(entry)))
}

/// The error for a data directory of a later epoch, in which the shoot continues.
pub(super) fn later_epoch(data_dir: &Path, own: i64, epoch: i64) -> Error {
    Error::new(
        Class::OtherEpoch,
        format!(
            "the data directory {} belongs to ownership epoch {own}, and this etcd is of the earlier epoch {epoch}: \
             it must not start on it. Look at the shoot's status.ownership.epoch and at the annotation of the Etcd",
            data_dir.display()
        ),
    )
}

/// Writes durably the epoch of a data directory, and creates the directory if need be. The first epoch needs
/// no file: a missing mark means the first epoch.
pub(super) fn mark(data_dir: &Path, epoch: i64) -> Result<()> {
    if epoch == FIRST {
        return Ok(());
    }
    let mark = data_dir.join(MARK);
    if read_mark(data_dir)? == epoch {
        return Ok(());
    }
    // A rename makes the mark appear as a whole: the directory may already hold data of the epoch before.
    let begun = data_dir.join(MARK_BEGUN);
    let written = || {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(data_dir)?;
        let mut file = fs::File::create(&begun)?;
        writeln!(file, "{epoch}")?;
        file.sync_all()?;
        fs::rename(&begun, &mark)?;
        fs::File::open(data_dir)?.sync_all()?;
        data_dir
            .parent()
            .map_or(Ok(()), |parent| fs::File::open(parent)?.sync_all())
    };
    written().map_err(|e| Error::file("write", &mark, &e))
}

/// The epoch in the mark of a data directory.
pub(super) fn read_mark(data_dir: &Path) -> Result<i64> {
    let mark = data_dir.join(MARK);
    match fs::read_to_string(&mark) {
        // A crash cut the file. `mark` writes the file before the directory is used, so there are no data of
        // that epoch.
        Ok(text) if text.trim().is_empty() => Ok(0),
        Ok(text) => text.trim().parse().map_err(|_| {
            Error::new(
                Class::DataDirectory,
                format!(
                    "{} does not hold a number; write the epoch of the data into it",
                    mark.display()
                ),
            )
        }),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(FIRST),
        Err(e) => Err(Error::file("read", &mark, &e)),
    }
}

/// A record begins with its length in eight bytes. The upper bytes hold padding, so the first eight bytes are
/// never all zero.
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

fn beside(data_dir: &Path, end: &str) -> PathBuf {
    let mut name = data_dir.file_name().unwrap_or_default().to_owned();
    name.push(end);
    data_dir.with_file_name(name)
}

/// The path of the data directory that a restore replaced, kept until etcd serves from the new directory.
pub(super) fn replaced(data_dir: &Path) -> PathBuf {
    beside(data_dir, ".replaced")
}

/// The folder beside the data directory in which a restore is built. The folder is on the same volume, so the
/// result can be renamed. Dropping the `WorkDir` removes the folder.
pub(super) struct WorkDir {
    folder: PathBuf,
    result: PathBuf,
    replaced: PathBuf,
}

impl WorkDir {
    /// Sets the paths, and removes the leftovers of an interrupted run. The replaced data directory stays.
    pub(super) fn new(data_dir: &Path) -> Result<Self> {
        let folder = beside(data_dir, ".restoring");
        let work = Self {
            result: folder.join("result"),
            folder,
            replaced: replaced(data_dir),
        };
        remove(&work.folder)?;
        Ok(work)
    }

    /// Creates the folder.
    pub(super) fn begin(&self) -> Result<PathBuf> {
        fs::create_dir_all(&self.folder).map_err(|e| Error::file("create", &self.folder, &e))?;
        Ok(self.folder.clone())
    }

    pub(super) fn result(&self) -> &Path {
        &self.result
    }
}

impl Drop for WorkDir {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.folder) {
            tracing::warn!(%error, "the work directory stays until the next start");
        }
    }
}

/// Removes a file or a folder; a missing path is not an error.
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
            copy_file(&entry, &target)?;
        }
    }
    Ok(())
}

/// Copies a file.
pub(super) fn copy_file(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to)
        .map(drop)
        .map_err(|e| Error::file("copy", from, &e))
}

/// Syncs a folder and everything below the folder to the disk.
pub(super) fn sync(path: &Path) -> Result<()> {
    if path.is_dir() {
        entries(path)?.iter().try_for_each(|entry| sync(entry))?;
    }
    fs::File::open(path)
        .and_then(|file| file.sync_all())
        .map_err(|e| Error::file("sync", path, &e))
}

/// Swaps a finished data directory with the old directory, and keeps the old. If several directories were
/// replaced before etcd served, the first is kept: the later directories came from the store.
pub(super) fn swap(work: &WorkDir, data_dir: &Path) -> Result<()> {
    let (result, kept) = (work.result(), work.replaced.exists());
    let replaced = if kept {
        work.folder.join("restored-before")
    } else {
        work.replaced.clone()
    };
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
        moved(data_dir, &replaced)?;
    }
    if let Err(e) = moved(result, data_dir) {
        if replaced.exists() {
            moved(&replaced, data_dir)?;
        }
        return Err(e);
    }
    if let Some(parent) = data_dir.parent() {
        fs::File::open(parent)
            .and_then(|f| f.sync_all())
            .map_err(|e| Error::file("sync", parent, &e))?;
    }
    Ok(())
}
