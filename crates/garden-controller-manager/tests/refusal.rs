//! How the process ends that must not start.
#![allow(clippy::unwrap_used)]

use std::process::Command;

/// The reason is for a person: one sentence on stderr, and not in the midst of a record of the log.
#[test]
fn a_file_that_is_not_there_is_told_on_stderr() {
    let output = Command::new(env!("CARGO_BIN_EXE_garden-controller-manager"))
        .args([
            "--enable-leader-migration",
            "--leader-migration-config=/nowhere/m.yaml",
        ])
        .output()
        .unwrap();
    let (log, told) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.starts_with("/nowhere/m.yaml: cannot be read (No such file"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 1, "{told}");
    assert!(log.lines().all(|line| line.starts_with('{')), "{log}");
}
