//! The crates of each process.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The dependencies of each crate in the workspace, by the name of the folder.
pub struct Crates(BTreeMap<String, BTreeSet<String>>);

impl Crates {
    pub fn read() -> Result<Self> {
        let output = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["metadata", "--format-version=1", "--locked", "--no-deps"])
            .output()
            .context("cargo metadata could not be started")?;
        if !output.status.success() {
            bail!(
                "cargo metadata failed: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(Self::of_metadata(&serde_json::from_slice(&output.stdout)?))
    }

    fn of_metadata(metadata: &Value) -> Self {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let folder_of = |path: &Value| {
            let path = Path::new(path.as_str().unwrap_or_default());
            path.file_name().map(|name| name.to_string_lossy().into_owned())
        };
        let mut crates = BTreeMap::new();
        for package in list(&metadata["packages"]) {
            let manifest = package["manifest_path"].as_str().unwrap_or_default();
            let Some(folder) = Path::new(manifest).parent().and_then(Path::file_name) else {
                continue;
            };
            let needed = list(&package["dependencies"]);
            let needed = needed.iter().filter(|dependency| dependency["kind"].is_null());
            let needed = needed
                .filter_map(|dependency| folder_of(&dependency["path"]))
                .collect();
            crates.insert(folder.to_string_lossy().into_owned(), needed);
        }
        Self(crates)
    }

    /// The crate and all dependencies.
    pub fn closure(&self, folder: &str) -> BTreeSet<String> {
        let (mut found, mut waiting) = (BTreeSet::new(), vec![folder.to_owned()]);
        while let Some(folder) = waiting.pop() {
            if found.insert(folder.clone()) {
                waiting.extend(self.0.get(&folder).into_iter().flatten().cloned());
            }
        }
        found
    }
}
