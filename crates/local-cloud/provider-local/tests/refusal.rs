//! The end of a process that must not start.
#![allow(clippy::unwrap_used)]

#[test]
fn a_file_that_is_not_there_is_told_on_stderr() {
    testkit::refuses_missing_migration_file(env!("CARGO_BIN_EXE_provider-local"), &[]).unwrap();
}
