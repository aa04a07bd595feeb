//! Checks the free space on the volume for a restore. The check runs before the restore begins, and when the
//! size of the database is known. A volume that fills up in the middle would cost the minutes until then.

use crate::chain::Chain;
use crate::error::{Class, Error, Result};
use nix::sys::statvfs::statvfs;
use std::path::Path;

/// Bytes that a restore needs at the same time: the fetched database, and the database that is built from it.
/// For each delta: its file, and the pages that it adds to the database, twice for a defragmentation at the
/// end.
pub(super) fn needed(full: u64, deltas: u64) -> u64 {
    full.saturating_mul(2).saturating_add(deltas.saturating_mul(3))
}

/// The least space that a chain can need: unpacking makes no object smaller.
pub(super) fn needed_at_least(chain: &Chain) -> u64 {
    let deltas = chain.deltas.iter().map(|delta| delta.size).sum();
    needed(chain.full.size, deltas)
}

/// Fails if the volume has less free space than `needed`, before any change.
pub(super) fn check(folder: &Path, needed: u64) -> Result<()> {
    let volume = statvfs(folder).map_err(|e| Error::file("look at the volume of", folder, &e.into()))?;
    #[allow(clippy::useless_conversion)] // the types differ from one system to another
    let free = u64::from(volume.blocks_available()).saturating_mul(u64::from(volume.fragment_size()));
    judge(folder, free, needed)
}

fn judge(folder: &Path, free: u64, needed: u64) -> Result<()> {
    if free >= needed {
        return Ok(());
    }
    let mib = |bytes: u64| bytes.div_ceil(1 << 20);
    Err(Error::new(
        Class::DataDirectory,
        format!(
            "the volume of {} has {} MiB free and the restore needs {} MiB: enlarge the volume claim (and \
             spec.storageCapacity of the Etcd), or remove what lies beside the data directory; nothing was changed",
            folder.display(),
            mib(free),
            mib(needed)
        ),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_volume_that_is_too_small_is_told_with_both_figures_before_anything_is_changed() {
        let folder = tempfile::tempdir().unwrap();
        let needed = needed(370 << 20, 30 << 20);
        assert_eq!(needed, 830 << 20);
        assert!(judge(folder.path(), needed, needed).is_ok());
        let error = judge(folder.path(), needed - 1, needed).unwrap_err();
        assert_eq!(error.class, Class::DataDirectory);
        assert!(
            error
                .message
                .contains("has 830 MiB free and the restore needs 830 MiB"),
            "{error}"
        );
        // The machine's own volume: no test machine has an exabyte.
        assert!(check(folder.path(), 1 << 60).is_err());
        assert!(check(folder.path(), 1).is_ok());
    }
}
