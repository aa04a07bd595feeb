//! The files below a folder, for tests of pages and sources.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// All files with the extension below the folder, in the order of the paths.
///
/// # Errors
/// A folder cannot be read.
pub fn files_below(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
        for entry in entries {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn files_of_all_folders_are_found_in_the_order_of_the_paths() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("b/c.md")).unwrap();
        for name in ["z.md", "b/y.md", "b/c.md/x.md", "b/y.rs"] {
            fs::write(root.join(name), "").unwrap();
        }
        let expected = ["b/c.md/x.md", "b/y.md", "z.md"].map(|name| root.join(name));
        assert_eq!(files_below(root, "md").unwrap(), expected);
        let why = files_below(&root.join("absent"), "md").unwrap_err();
        assert!(why.to_string().ends_with("absent"), "{why}");
    }
}
