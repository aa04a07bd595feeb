//! `hack/test-runner.sh` never runs a program that guards safety a second time.
#![allow(clippy::unwrap_used)]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// A package with one of these dependencies may decide on the owner of a shoot, or act with the permit of an
/// owner.
const GUARDS: [&str; 4] = ["owner-checks", "ownership", "repot-lease", "repot-permit"];

#[test]
fn a_program_that_guards_safety_runs_once_and_a_second_run_of_others_is_named() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../.."));
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    fs::write(
        &program,
        "#!/bin/sh\necho >>\"$RUNS\"\n[ \"$(wc -l <\"$RUNS\")\" -gt 1 ]\n",
    )
    .unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let (runs, unsteady) = (folder.path().join("runs"), folder.path().join("unsteady"));
    let run = |package: &str| {
        for file in [&runs, &unsteady] {
            fs::write(file, "").unwrap();
        }
        let ran = Command::new("bash")
            .args(["-c", "exec \"$0\" \"$1\" 3>&2"])
            .args([&root.join("hack/test-runner.sh"), &program])
            .envs([("RUNS", &runs), ("REPOT_TEST_UNSTEADY", &unsteady)])
            .env("CARGO_PKG_NAME", package)
            // `make test` runs this very program by the same script.
            .env_remove("REPOT_TEST_BEGUN")
            .env_remove("REPOT_TEST_ALONE")
            .env_remove("REPOT_TEST_SECONDS")
            .output()
            .unwrap();
        let lines = fs::read_to_string(&runs).unwrap().lines().count();
        (
            ran.status.success(),
            lines,
            fs::read_to_string(&unsteady).unwrap(),
        )
    };
    let mut guarding = Vec::from(["repot-tests".to_owned(), "a-new-package".to_owned()]);
    for folder in crate_folders(&root.join("crates")) {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let depends = |guard: &str| manifest.contains(&format!("\n{guard}."));
        if GUARDS.contains(&name.as_str()) || GUARDS.iter().any(|guard| depends(guard)) {
            guarding.push(name);
        }
    }
    assert!(guarding.len() > 10, "{guarding:?}");
    for package in guarding {
        assert_eq!(run(&package), (false, 1, String::new()), "{package}");
    }
    assert_eq!(run("tunnel"), (true, 2, "tunnel program\n".to_owned()));
}

/// The folders below `folder` with a manifest.
fn crate_folders(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(folder) = open.pop() {
        if folder.join("Cargo.toml").exists() {
            found.push(folder);
            continue;
        }
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    found
}
