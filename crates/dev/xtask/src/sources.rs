//! Habits that are visible in the sources: length of files, names of modules, no detached tasks, no client in
//! `api`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::{clients, interfaces};

/// No file is longer than this.
const LONGEST: usize = 500;

/// Half of the files are at most this long.
const MEDIAN: usize = 130;

/// Names that do not state the purpose of a module.
const VAGUE: &[&str] = &["utils", "util", "common", "helpers", "helper", "misc"];

/// Compiled only for tests: a sent message must arrive there independently of the sender.
const SIMULATED_NETWORK: &str = "crates/core/lease/src/simulation/network.rs";

/// A detached task outlives the guard of the task's creator. Test programs run without a guard; there, the
/// lint requires a reason.
const DETACHED: &[&str] = &[
    "tokio::spawn(",
    "tokio::task::spawn(",
    "task::spawn(",
    "Handle::current().spawn(",
];

/// Words of a client; `api`, a crate of types only, must not contain any.
const CLIENT: &[&str] = &[
    "kube::Client",
    "kube::Api",
    "kube::client",
    "kube::runtime",
    "async fn ",
    ".await",
];

/// A line for each breach below `root`.
pub fn breaches(root: &Path) -> Result<Vec<String>> {
    let mut breaches = Vec::new();
    let mut lengths = Vec::new();
    for file in rust_files(root)? {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        lengths.push(text.lines().count());
        breaches.extend(in_file(&shown, &text));
        breaches.extend(clients::in_file(&shown, &text));
        breaches.extend(interfaces::in_file(&shown, &text));
    }
    breaches.extend(clients::in_list(|file| fs::read_to_string(root.join(file)).ok()));
    lengths.sort_unstable();
    let median = lengths.get(lengths.len() / 2).copied().unwrap_or_default();
    if median > MEDIAN {
        breaches.push(format!(
            "half of the files are longer than {median} lines; {MEDIAN} is the most"
        ));
    }
    Ok(breaches)
}

/// Breaches in a file. `path` is relative to the repository.
fn in_file(path: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let lines = text.lines().count();
    if lines > LONGEST {
        breaches.push(format!(
            "{path} has {lines} lines; {LONGEST} is the most: split it by what its parts are for"
        ));
    }
    for part in path
        .trim_end_matches(".rs")
        .split('/')
        .filter(|part| VAGUE.contains(part))
    {
        breaches.push(format!("{path}: {part} does not say what the module is for"));
    }
    if path.starts_with("crates/dev/xtask/") {
        return breaches; // This crate names the words that it looks for.
    }
    for (number, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        if path.starts_with("crates/")
            && path != SIMULATED_NETWORK
            && DETACHED.iter().any(|word| code.contains(word))
        {
            breaches.push(format!(
                "{path}:{}: a detached task; use a JoinSet or combine futures",
                number + 1
            ));
        }
        if path.starts_with("crates/core/api/src/") && CLIENT.iter().any(|word| code.contains(word)) {
            breaches.push(format!(
                "{path}:{}: api is types only, without a client",
                number + 1
            ));
        }
    }
    breaches
}

/// The folder of each crate of a group: each folder below `crates/` with a manifest.
pub fn crate_folders(root: &Path) -> Result<Vec<PathBuf>> {
    let manifests = files_below(vec![root.join("crates")], "toml")?;
    let is_manifest = |path: &&PathBuf| path.file_name().is_some_and(|name| name == "Cargo.toml");
    let folders = manifests
        .iter()
        .filter(is_manifest)
        .filter_map(|path| path.parent());
    Ok(folders.map(Path::to_path_buf).collect())
}

/// The crate of a source file below `crates/`, and the path of the file inside the crate.
pub fn crate_of(path: &str) -> Option<(&str, &str)> {
    let below = path.strip_prefix("crates/")?;
    let inside = ["/src/", "/tests/", "/examples/"]
        .iter()
        .filter_map(|folder| below.find(folder))
        .min()?;
    let (folder, file) = (&below[..inside], &below[inside + 1..]);
    Some((folder.rsplit('/').next().unwrap_or(folder), file))
}

pub(crate) fn rust_files(root: &Path) -> Result<Vec<PathBuf>> {
    files_below(vec![root.join("crates"), root.join("tests")], "rs")
}

/// All files below these folders with the extension, in the order of the paths.
pub(crate) fn files_below(mut folders: Vec<PathBuf>, extension: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
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
    use super::in_file;

    #[test]
    fn long_files_and_vague_names_are_found() {
        let found = in_file("crates/core/parts/src/utils/dns.rs", &"\n".repeat(501));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn a_detached_task_is_found_but_not_a_comment_about_one() {
        let found = in_file(
            "crates/core/runtime/src/a.rs",
            "// never tokio::spawn(it)\nset.spawn(a);\ntokio::spawn(b);\n",
        );
        assert_eq!(
            found,
            ["crates/core/runtime/src/a.rs:3: a detached task; use a JoinSet or combine futures"]
        );
    }

    #[test]
    fn api_has_no_client() {
        assert_eq!(
            in_file("crates/core/api/src/a.rs", "use kube::Client;\n").len(),
            1
        );
        assert_eq!(
            in_file("crates/core/gardenlet/src/a.rs", "use kube::Client;\n").len(),
            0
        );
    }
}
