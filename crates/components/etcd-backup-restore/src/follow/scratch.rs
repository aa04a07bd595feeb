//! A file that is removed when its value is dropped.

use std::path::{Path, PathBuf};

pub(super) struct ScratchFile(PathBuf);

impl ScratchFile {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        // A file that was never created is no error.
        let _ = std::fs::remove_file(&self.0);
    }
}
