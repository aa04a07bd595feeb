//! How the process ends that must not start.
#![allow(clippy::unwrap_used)]

#[test]
fn a_file_that_is_not_there_is_told_on_stderr() {
    let flags = ["--garden-kubeconfig=k", "--seed-name=s", "--seed-config=c"];
    testkit::refuses_missing_migration_file(env!("CARGO_BIN_EXE_gardenlet"), &flags).unwrap();
}
