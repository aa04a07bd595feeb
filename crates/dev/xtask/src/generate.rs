//! Generated files: definitions and pages from `api`, `docs/understand/flows.md` from the flows,
//! `values.schema.json` of each chart and `docs/look-up/values.md` from the values of the charts, and
//! `docs/look-up/rights.md` from the roles of the charts.
//!
//! This task owns the folders below `crds/` and `docs/look-up/kinds`. A file that is not generated any more
//! is removed (or, with `--check`, reported).

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};

use crate::{flows, reference, rights, values_page, values_schema};

/// Writes the generated files, or with `check` only compares them.
pub fn run(check: bool) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
    let files = files(&root)?;
    let mut differing = Vec::new();
    for (path, content) in &files {
        if fs::read_to_string(root.join(path)).ok().as_ref() != Some(content) {
            differing.push(path.clone());
        }
    }
    for folder in api::generated::FOLDERS.iter().chain([&reference::FOLDER]) {
        differing.extend(stale(&root, Path::new(folder), &files)?);
    }
    if check {
        return report(&differing);
    }
    for path in differing {
        let target = root.join(&path);
        match files.get(&path) {
            Some(content) => write(&target, content)?,
            None => fs::remove_file(&target).with_context(|| format!("removing {}", path.display()))?,
        }
        println!("{}", path.display());
    }
    Ok(())
}

fn files(root: &Path) -> anyhow::Result<BTreeMap<PathBuf, String>> {
    let mut files: BTreeMap<PathBuf, String> = api::generated::files()?
        .into_iter()
        .map(|(path, content)| (path.into(), content))
        .collect();
    files.insert(PathBuf::from(flows::PAGE), flows::page()?);
    files.extend(reference::files()?);
    files.extend(values_schema::files(root)?);
    files.insert(PathBuf::from(values_page::PAGE), values_page::page(root)?);
    files.insert(PathBuf::from(rights::PAGE), rights::page(root)?);
    Ok(files)
}

fn stale(root: &Path, folder: &Path, files: &BTreeMap<PathBuf, String>) -> anyhow::Result<Vec<PathBuf>> {
    let Ok(entries) = fs::read_dir(root.join(folder)) else {
        return Ok(Vec::new());
    };
    let mut stale = Vec::new();
    for entry in entries {
        let path = folder.join(entry?.file_name());
        if !files.contains_key(&path) {
            stale.push(path);
        }
    }
    Ok(stale)
}

fn write(target: &Path, content: &str) -> anyhow::Result<()> {
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(target, content).with_context(|| format!("writing {}", target.display()))
}

fn report(differing: &[PathBuf]) -> anyhow::Result<()> {
    if differing.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = differing.iter().map(|path| path.display().to_string()).collect();
    bail!(
        "not as generated; run `make generate` and commit the result:\n  {}",
        names.join("\n  ")
    )
}
