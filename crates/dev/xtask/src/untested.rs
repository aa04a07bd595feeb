//! Targets without tests: Cargo links a program of tests for each library and each binary, also for a target
//! without a test. `test = false` in the manifest saves this program, and would hide a test of the target.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::sources::files_below;

/// A line for each target of the workspace with `test = false` that has tests, and for each target without
/// tests that lacks `test = false`. `metadata` is the output of `cargo metadata`.
pub fn breaches(metadata: &Value) -> Result<Vec<String>> {
    let members = list(&metadata["workspace_members"]);
    let mut breaches = Vec::new();
    for package in list(&metadata["packages"]) {
        if members.contains(&package["id"]) {
            breaches.extend(breaches_of_package(list(&package["targets"]))?);
        }
    }
    Ok(breaches)
}

fn breaches_of_package(targets: &[Value]) -> Result<Vec<String>> {
    let has_library = targets.iter().any(|target| has_kind(target, "lib"));
    let mut breaches = Vec::new();
    for target in targets {
        let (library, binary) = (has_kind(target, "lib"), has_kind(target, "bin"));
        let (Some(root), true) = (target["src_path"].as_str(), library || binary) else {
            continue;
        };
        // In `src`, the files beside the root of a binary belong to the library, if there is a library.
        let files = match Path::new(root).parent() {
            Some(folder) if folder.ends_with("src") && (library || !has_library) => {
                files_below(vec![folder.to_path_buf()], "rs")?
            }
            _ => vec![PathBuf::from(root)],
        };
        let mut has_tests = false;
        for file in &files {
            let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
            has_tests |= has_test(&text);
        }
        breaches.extend(breach(root, target["test"] == true, has_tests));
    }
    Ok(breaches)
}

fn breach(root: &str, tested: bool, has_tests: bool) -> Option<String> {
    match (tested, has_tests) {
        (false, true) => Some(format!(
            "{root} has tests that never run: remove `test = false` from the manifest"
        )),
        (true, false) => Some(format!(
            "{root} has no test: write `test = false` for the target into the manifest, so that no empty program is linked"
        )),
        _ => None,
    }
}

/// Whether a line of this source begins a test. Documentation with code is not searched for.
fn has_test(text: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| {
        ["#[test]", "#[tokio::test", "proptest! {", "scenarios! {"]
            .iter()
            .any(|start| line.starts_with(start) || line.ends_with(start))
    })
}

fn has_kind(target: &Value, kind: &str) -> bool {
    list(&target["kind"]).iter().any(|found| found == kind)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_never_run_and_empty_programs_are_breaches() {
        let hidden = breach("src/lib.rs", false, true).unwrap_or_default();
        assert!(hidden.contains("src/lib.rs has tests that never run"), "{hidden}");
        let empty = breach("src/main.rs", true, false).unwrap_or_default();
        assert!(empty.contains("src/main.rs has no test"), "{empty}");
        assert_eq!(breach("src/lib.rs", true, true), None);
        assert_eq!(breach("src/main.rs", false, false), None);
    }

    #[test]
    fn a_test_is_known_by_its_attribute_or_macro() {
        for text in [
            "    #[test]\n",
            "#[tokio::test(flavor = \"multi_thread\")]",
            "testkit::scenarios! {\n",
        ] {
            assert!(has_test(text), "{text}");
        }
        assert!(!has_test("// #[test] is an attribute\nfn main() {}\n"));
    }
}
