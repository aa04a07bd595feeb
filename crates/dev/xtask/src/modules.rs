//! The files of modules: each module belongs to a single crate, and a module with children is a folder.
//!
//! A `#[path]` into a different crate compiles a copy of a file that the owner changes without a look at the
//! copy. A development crate below `crates/dev` shares such code. A table of modules names each module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};

use crate::sources::{files_below, rust_files};

/// A line for each breach below `root`.
pub fn breaches(root: &Path) -> Result<Vec<String>> {
    let manifests = files_below(vec![root.join("crates"), root.join("tests")], "toml")?;
    let crates = manifests
        .iter()
        .filter(|path| path.file_name().is_some_and(|name| name == "Cargo.toml"))
        .filter_map(|path| path.parent())
        .map(|folder| relative(folder, root))
        .collect();
    let mut files = BTreeMap::new();
    for file in rust_files(root)? {
        let text = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
        files.insert(relative(&file, root), text);
    }
    let mut breaches = shared_by_path(&crates, &files);
    breaches.extend(beside_folders(&files));
    breaches.extend(files.iter().flat_map(|(file, text)| missing_in_table(file, text)));
    Ok(breaches)
}

fn relative(path: &Path, root: &Path) -> PathBuf {
    path.strip_prefix(root).unwrap_or(path).to_path_buf()
}

/// A line for each `#[path]` that leads out of the crate. `crates`: the folders of all crates.
fn shared_by_path(crates: &BTreeSet<PathBuf>, files: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let mut breaches = Vec::new();
    for (file, text) in files {
        let folder = file.parent().unwrap_or(Path::new(""));
        for (number, line) in text.lines().enumerate() {
            let Some(path) = path_attribute(line) else {
                continue;
            };
            let target = without_dots(&folder.join(path));
            if crate_of(&target, crates) != crate_of(file, crates) {
                breaches.push(format!(
                    "{}:{}: #[path] leads out of the crate, to {}; share the file by a crate below crates/dev",
                    file.display(),
                    number + 1,
                    target.display()
                ));
            }
        }
    }
    breaches
}

/// The folder of the crate with this file, if any.
fn crate_of<'p>(path: &'p Path, crates: &BTreeSet<PathBuf>) -> Option<&'p Path> {
    path.ancestors().find(|folder| crates.contains(*folder))
}

/// The path of a `#[path = "…"]` on this line, also inside of a `cfg_attr`.
fn path_attribute(line: &str) -> Option<&str> {
    let attribute = line.trim_start().strip_prefix("#[")?;
    let (before, path) = attribute.split_once("path = \"")?;
    let is_path = before.is_empty() || (before.starts_with("cfg_attr(") && before.ends_with([' ', ',']));
    is_path.then(|| path.split('"').next()).flatten()
}

/// The path without `.` and `..`. A `..` above the root stays, and so leads out of each crate.
fn without_dots(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if found.file_name().is_some() => {
                found.pop();
            }
            _ => found.push(component),
        }
    }
    found
}

/// A line for each file `x.rs` beside a folder `x` with modules.
fn beside_folders(files: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let folders: BTreeSet<&Path> = files.keys().filter_map(|file| file.parent()).collect();
    let beside = files.keys().filter_map(|file| {
        let folder = file.with_extension("");
        folders.contains(folder.as_path()).then(|| {
            format!(
                "{}: the modules of this file are in a folder; move the file to {}/mod.rs, or main.rs for a program",
                file.display(),
                folder.display()
            )
        })
    });
    beside.collect()
}

/// A line for each module that the table of modules in the same file does not name. A reader who looks for a
/// module trusts such a table. Modules of tests need no row.
fn missing_in_table(file: &Path, text: &str) -> Vec<String> {
    let head: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("//!")).collect();
    let begins_table = |line: &&str| {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        cells.iter().any(|cell| ["file", "module"].contains(cell))
    };
    if !head.iter().any(begins_table) {
        return Vec::new();
    }
    let named: BTreeSet<&str> = head
        .iter()
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .flat_map(|name| name.split("::"))
        .collect();
    let mut attributes = Vec::new();
    let mut missing = Vec::new();
    for line in text.lines() {
        if line.starts_with("#[") {
            attributes.push(line);
            continue;
        }
        let attributes = std::mem::take(&mut attributes);
        let is_test = attributes.iter().any(|attribute| attribute.contains("cfg(test)"));
        if let Some(module) = declared_module(line).filter(|module| !is_test && !named.contains(module)) {
            missing.push(format!(
                "{}: the table of modules has no row for `{module}`",
                file.display()
            ));
        }
    }
    missing
}

/// The name in `mod name;`, with any visibility.
fn declared_module(line: &str) -> Option<&str> {
    let (before, name) = line.strip_suffix(';')?.rsplit_once("mod ")?;
    let is_declaration = before.is_empty() || (before.starts_with("pub") && before.ends_with(' '));
    is_declaration.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_that_the_table_does_not_name_is_found() {
        let text = "//! Parts.\n//!\n//! | file | purpose |\n//! |---|---|\n//! | `one`, [`two::inner`] | both |\n\n\
                    mod one;\npub(crate) mod two;\npub mod three;\n#[cfg(test)]\n#[path = \"x.rs\"]\nmod tests;\n";
        assert_eq!(
            missing_in_table(Path::new("crates/core/parts/src/lib.rs"), text),
            ["crates/core/parts/src/lib.rs: the table of modules has no row for `three`"]
        );
        let without_table = text.replace("| file |", "| topic |");
        assert!(missing_in_table(Path::new("a.rs"), &without_table).is_empty());
    }

    fn files(files: &[(&str, &str)]) -> BTreeMap<PathBuf, String> {
        let file = |(path, text): &(&str, &str)| (PathBuf::from(path), (*text).to_owned());
        files.iter().map(file).collect()
    }

    fn crates() -> BTreeSet<PathBuf> {
        ["crates/core/parts", "crates/core/flow", "tests", "tests/drill"]
            .map(PathBuf::from)
            .into()
    }

    #[test]
    fn a_path_into_a_different_crate_is_found() {
        let sources = files(&[
            (
                "tests/drill/main.rs",
                "mod a;\n#[path = \"../../crates/core/parts/tests/world/terms.rs\"]\nmod terms;\n",
            ),
            (
                "crates/core/flow/src/tests/proxy.rs",
                "#[cfg_attr(test, path = \"../../../parts/src/a.rs\")]\nmod a;\n",
            ),
            (
                "tests/operations.rs",
                "#[path = \"drill/world.rs\"]\nmod world;\n",
            ),
        ]);
        assert_eq!(
            shared_by_path(&crates(), &sources),
            [
                "crates/core/flow/src/tests/proxy.rs:1: #[path] leads out of the crate, to crates/core/parts/src/a.rs; \
                 share the file by a crate below crates/dev",
                "tests/drill/main.rs:2: #[path] leads out of the crate, to crates/core/parts/tests/world/terms.rs; \
                 share the file by a crate below crates/dev",
                "tests/operations.rs:1: #[path] leads out of the crate, to tests/drill/world.rs; \
                 share the file by a crate below crates/dev",
            ]
        );
    }

    #[test]
    fn a_path_out_of_the_repository_is_found() {
        let sources = files(&[(
            "tests/drill/main.rs",
            "#[path = \"../../../elsewhere/a.rs\"]\nmod a;\n",
        )]);
        assert_eq!(shared_by_path(&crates(), &sources).len(), 1);
    }

    #[test]
    fn a_path_inside_of_the_crate_passes() {
        let sources = files(&[
            (
                "crates/core/parts/src/plan.rs",
                "#[cfg(test)]\n#[path = \"plan_tests.rs\"]\nmod tests;\n",
            ),
            (
                "crates/core/parts/tests/claim/main.rs",
                "#[path = \"../world/mod.rs\"]\nmod world;\n",
            ),
            (
                "crates/core/flow/src/lib.rs",
                "// #[path = \"../../parts/a.rs\"]\n#[serde(path = \"../../parts/a.rs\")]\n",
            ),
        ]);
        assert!(shared_by_path(&crates(), &sources).is_empty());
    }

    #[test]
    fn a_file_beside_the_folder_of_its_modules_is_found() {
        let sources = files(&[
            ("crates/core/parts/src/lib.rs", ""),
            ("crates/core/parts/src/etcd.rs", ""),
            ("crates/core/parts/src/etcd/copy.rs", ""),
            ("crates/core/parts/src/nodes/mod.rs", ""),
            ("crates/core/parts/src/nodes/room.rs", ""),
        ]);
        assert_eq!(
            beside_folders(&sources),
            [
                "crates/core/parts/src/etcd.rs: the modules of this file are in a folder; \
              move the file to crates/core/parts/src/etcd/mod.rs, or main.rs for a program"
            ]
        );
    }
}
