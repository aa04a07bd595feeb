//! The end of a process that must not start.
#![allow(clippy::unwrap_used)]

#[test]
fn a_file_that_is_not_there_is_told_on_stderr() {
    let flags = ["--kubeconfig=k", "--cluster-name=c", "--cloud-credentials=d"];
    testkit::refuses_missing_migration_file(env!("CARGO_BIN_EXE_cloud-controller-manager-local"), &flags)
        .unwrap();
}
