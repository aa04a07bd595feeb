//! The end of a manager that must not start.

use std::process::Command;

use anyhow::{Result, ensure};

/// Starts a manager with these flags and a missing file of leader migration. The manager must end immediately
/// with exit code 1, and report the reason in a single sentence on stderr, for a person. stdout may contain
/// only log records.
///
/// # Errors
/// The manager ends differently.
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
