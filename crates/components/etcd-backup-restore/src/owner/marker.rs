//! The seal on the volume. The file lies beside the data directory: it moves with the volume, and stays when
//! the data are replaced.

use crate::error::{Class, Error, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// `<data-dir>.sealed`.
#[derive(Clone, Debug)]
pub struct Marker {
    path: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct SealFile {
    /// This epoch, and each one before it, never serves again.
    epoch: i64,
    /// The reason, for humans.
    why: String,
}

impl Marker {
    /// The seal of a data directory.
    #[must_use]
    pub fn beside(data_dir: &Path) -> Self {
        // Without a trailing slash: the seal would otherwise lie inside, and vanish with the data.
        let mut path = data_dir.components().collect::<PathBuf>().into_os_string();
        path.push(".sealed");
        Self { path: path.into() }
    }

    /// Path of the seal.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Why an epoch was sealed; `None` without a seal. An unreadable file is an error: the file may be a
    /// seal.
    pub fn seal_reason(&self, epoch: i64) -> Result<Option<String>> {
        let found = self.read()?;
        Ok(found.filter(|found| found.epoch >= epoch).map(|found| found.why))
    }

    /// Seals an epoch durably. The seal of a later epoch stays.
    pub fn write(&self, epoch: i64, why: &str) -> Result<()> {
        if self.seal_reason(epoch)?.is_some() {
            return Ok(());
        }
        let sealed = SealFile {
            epoch,
            why: why.to_owned(),
        };
        let content =
            serde_json::to_vec(&sealed).map_err(|e| Error::new(Class::DataDirectory, e.to_string()))?;
        let mut begun = self.path.as_os_str().to_owned();
        begun.push(".new");
        // A rename makes the file appear as a whole, and the sync makes the file durable before this returns.
        let written = || {
            let mut file = fs::File::create(&begun)?;
            file.write_all(&content)?;
            file.sync_all()?;
            fs::rename(&begun, &self.path)?;
            let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
            fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        };
        written().map_err(|e| Error::file("write", &self.path, &e))
    }

    fn read(&self) -> Result<Option<SealFile>> {
        let content = match fs::read(&self.path) {
            Ok(content) => content,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::file("read", &self.path, &e)),
        };
        serde_json::from_slice(&content).map(Some).map_err(|e| {
            let what = format!(
                "{} cannot be understood ({e}), and may say that this etcd must never serve again: put \
                 {{\"epoch\": <the epoch that was sealed>, \"why\": \"\"}} there, or remove it where that is known to be wrong",
                self.path.display()
            );
            Error::new(Class::DataDirectory, what)
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_seal_counts_for_its_epoch_and_all_before_and_is_never_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let marker = Marker::beside(&folder.path().join("new.etcd"));
        assert_eq!(
            Marker::beside(&folder.path().join("new.etcd/")).path(),
            marker.path()
        );
        assert_eq!(marker.seal_reason(1).unwrap(), None);
        marker.write(3, "epoch 4 has begun").unwrap();
        assert_eq!(
            marker.seal_reason(2).unwrap().as_deref(),
            Some("epoch 4 has begun")
        );
        assert_eq!(
            marker.seal_reason(3).unwrap().as_deref(),
            Some("epoch 4 has begun")
        );
        assert_eq!(marker.seal_reason(4).unwrap(), None, "the shoot came back");
        // A late seal of an earlier epoch.
        marker.write(2, "late").unwrap();
        assert!(marker.seal_reason(3).unwrap().is_some());
        marker.write(5, "again").unwrap();
        assert!(marker.seal_reason(4).unwrap().is_some());
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing is left over"
        );
    }

    #[test]
    fn a_seal_that_cannot_be_read_is_no_missing_one() {
        let folder = tempfile::tempdir().unwrap();
        let marker = Marker::beside(&folder.path().join("new.etcd"));
        for content in ["", "{", "{\"epoch\": \"3\"}", "\0\0\0"] {
            fs::write(marker.path(), content).unwrap();
            assert_eq!(marker.seal_reason(1).unwrap_err().class, Class::DataDirectory);
            assert!(marker.write(1, "").is_err(), "{content:?}");
        }
    }
}
