//! Names in a folder of the store, with any characters.
//!
//! A key that is not a path of the library fails a whole listing. Examples are an empty segment, a dot
//! segment and a control character. Any user of the bucket can write such a key, so the key must not stop
//! backups and restores.

use crate::error::{Error, Result};
use object_store::{Error as StoreError, ObjectStore, path::Path};
use permit_object_store::{Bucket, Listed, ListedObject, RefusedRemoval};
use std::fs::{DirEntry, read_dir};
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::{Arc, Once};

/// Folders below a folder that are searched: marks of epochs lie one folder deeper than snapshots.
const DEPTH: usize = 1;
/// Version of an object that was written while the bucket kept no versions.
const UNVERSIONED: &str = "null";
/// Code of the store for a missing right, and for a retention.
const ACCESS_DENIED: &str = "AccessDenied";

/// A connection to the store.
pub(super) struct Client {
    /// Objects by their names.
    pub(super) objects: Arc<dyn ObjectStore>,
    /// The names.
    pub(super) names: Names,
}

/// Access to the names of a store.
pub(super) enum Names {
    /// A bucket, by the S3 protocol, and the report that old versions stay.
    Bucket(Bucket, Once),
    /// A folder of the file system.
    Folder(PathBuf),
}

/// An object below a folder.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Name {
    /// The key without the folder and the slash behind the folder.
    pub(super) name: String,
    /// Bytes of the content.
    pub(super) size: u64,
}

impl Names {
    /// Removes an object.
    pub(super) async fn delete(&self, path: &Path) -> Result<Deletion> {
        match self {
            Self::Bucket(bucket, report) => {
                let deleted = delete_versions(bucket, path.as_ref(), report).await;
                deleted.map_err(|e| Error::store(&format!("deleting {path}"), &e))
            }
            Self::Folder(root) => match std::fs::remove_file(root.join(path.as_ref())) {
                Ok(()) => Ok(Deletion::Deleted),
                Err(e) if e.kind() == ErrorKind::NotFound => Ok(Deletion::Deleted),
                Err(e) if e.kind() == ErrorKind::PermissionDenied => Ok(Deletion::Refused(e.to_string())),
                Err(e) => Err(Error::file("delete", &root.join(path.as_ref()), &e)),
            },
        }
    }

    /// Every object below a folder.
    pub(super) async fn below(&self, folder: &Path) -> Result<Vec<Name>> {
        let prefix = format!("{folder}/");
        match self {
            Self::Bucket(bucket, _) => {
                let found = bucket.objects(&prefix).await;
                let found = found.map_err(|e| Error::store(&format!("listing {folder}"), &e))?;
                // A store whose prefix is matched without case would return keys of a different folder.
                let names = found.into_iter().filter_map(|object| {
                    let name = object.key.strip_prefix(&prefix)?.to_owned();
                    let size = object.size;
                    Some(Name { name, size })
                });
                // The console of S3 shows a folder by an object without a name in the folder.
                Ok(names.filter(|object| !object.name.is_empty()).collect())
            }
            Self::Folder(root) => {
                let mut found = Vec::new();
                let path = root.join(folder.as_ref());
                search(&path, "", DEPTH, &mut found).map_err(|e| Error::file("list", &path, &e))?;
                Ok(found)
            }
        }
    }
}

/// Result of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deletion {
    /// The object does not exist any more.
    Deleted,
    /// The store accepts the account and refuses this deletion, with this code. A retention may protect the
    /// object.
    Refused(String),
}

impl From<Option<RefusedRemoval>> for Deletion {
    fn from(refused: Option<RefusedRemoval>) -> Self {
        refused.map_or(Self::Deleted, |refused| Self::Refused(refused.code))
    }
}

/// Removes every version of an object. If the account may not list or delete versions, or the store has no
/// versions, only the object is deleted. A listing then does not return the object any more.
async fn delete_versions(bucket: &Bucket, key: &str, report: &Once) -> object_store::Result<Deletion> {
    let mut position = None;
    let may_versions_stay = 'pages: loop {
        let page = bucket.page(Listed::Versions, key, position.as_ref()).await;
        let (page, next) = match page {
            Err(StoreError::NotImplemented { .. }) => break false,
            Err(StoreError::PermissionDenied { .. }) => break true,
            page => page?,
        };
        // A store that does not know versions answers with its objects.
        if page.iter().any(|object| object.version.is_none()) {
            break false;
        }
        for object in page.iter().filter(|object| object.key == key) {
            let Some(refused) = bucket.remove_one(object).await? else {
                continue;
            };
            // The only version in a bucket without versions. An account may have the right to delete the
            // object alone.
            if object.version.as_deref() == Some(UNVERSIONED) {
                break 'pages false;
            }
            if refused.code == ACCESS_DENIED && !may_delete_versions(bucket, key).await? {
                break 'pages true;
            }
            return Ok(Deletion::Refused(refused.code));
        }
        if next.is_none() || next == position {
            return Ok(Deletion::Deleted);
        }
        position = next;
    };
    let object = ListedObject {
        key: key.to_owned(),
        ..ListedObject::default()
    };
    let deletion = bucket.remove_one(&object).await?.into();
    if may_versions_stay && deletion == Deletion::Deleted {
        report.call_once(|| report_versions_stay(key));
    }
    Ok(deletion)
}

fn report_versions_stay(key: &str) {
    tracing::warn!(
        key,
        "the account of the backup Secret may not list or delete versions: old versions of deleted snapshots stay, if the \
         bucket has versions; add a lifecycle rule for noncurrent versions to the bucket, or grant s3:ListBucketVersions \
         and s3:DeleteObjectVersion"
    );
}

/// Tells an account without the right to delete versions from a retention: the store answers `AccessDenied`
/// to both. The deletion of an absent version succeeds with the right, and the version `null` is absent where
/// versions have ids.
async fn may_delete_versions(bucket: &Bucket, key: &str) -> object_store::Result<bool> {
    let absent = ListedObject {
        key: key.to_owned(),
        version: Some(UNVERSIONED.to_owned()),
        ..ListedObject::default()
    };
    let refused = bucket.remove_one(&absent).await?;
    Ok(refused.is_none_or(|refused| refused.code != ACCESS_DENIED))
}

fn search(folder: &std::path::Path, prefix: &str, depth: usize, found: &mut Vec<Name>) -> io::Result<()> {
    let entries = match read_dir(folder) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        // Follows links. A file that went away in between is not listed.
        let Ok(metadata) = std::fs::metadata(entry.path()) else {
            continue;
        };
        if metadata.is_file() && !is_unfinished(&entry) {
            let size = metadata.len();
            found.push(Name { name, size });
        } else if metadata.is_dir() && depth > 0 {
            search(&entry.path(), &format!("{name}/"), depth - 1, found)?;
        }
    }
    Ok(())
}

/// The library writes a file under the name with `#` and a number first.
fn is_unfinished(entry: &DirEntry) -> bool {
    let name = entry.file_name();
    let suffix = name
        .to_string_lossy()
        .split_once('#')
        .map(|(_, suffix)| suffix.to_owned());
    suffix.is_some_and(|suffix| !suffix.is_empty() && suffix.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_folder_lists_names_that_the_library_refuses() {
        let folder = tempfile::tempdir().unwrap();
        let names = Names::Folder(folder.path().to_owned());
        let v2 = Path::from("p/v2");
        assert_eq!(names.below(&v2).await.unwrap(), []);
        std::fs::create_dir_all(folder.path().join("p/v2/2/deeper")).unwrap();
        for name in ["a\u{1}b", "half#12", "whole#", "2/x", "2/deeper/y"] {
            std::fs::write(folder.path().join("p/v2").join(name), "1234").unwrap();
        }
        let mut found = names.below(&v2).await.unwrap();
        found.sort_by(|a, b| a.name.cmp(&b.name));
        let found: Vec<_> = found
            .iter()
            .map(|found| (found.name.as_str(), found.size))
            .collect();
        assert_eq!(found, [("2/x", 4), ("a\u{1}b", 4), ("whole#", 4)]);
    }
}
