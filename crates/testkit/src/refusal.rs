//! How a manager ends that must not start.

use std::process::Command;

use anyhow::{Result, ensure};

/// Starts a manager with these flags and a file of leader migration that is not there. It must end at once
/// with exit code 1, and tell why in one sentence on stderr, for a person; what is on stdout must be records
/// of the log and nothing else.
///
/// # Errors
/// It ends otherwise.
pub fn refuses_missing_migration_file(program: &str, flags: &[&str]) -> Result<()> {
    let output = Command::new(program)
        .args(flags)
        .args([
            "--enable-leader-migration",
            "--leader-migration-config=/nowhere/m.yaml",
        ])
        .output()?;
    let (log, told) = (
        String::from_utf8(output.stdout)?,
        String::from_utf8(output.stderr)?,
    );
    ensure!(output.status.code() == Some(1), "{:?}: {told}", output.status);
    ensure!(
        told.starts_with("/nowhere/m.yaml: cannot be read (No such file"),
        "{told}"
    );
    ensure!(told.lines().count() == 1, "{told}");
    ensure!(log.lines().all(|line| line.starts_with('{')), "{log}");
    Ok(())
}
