//! Rules of the process that are switched off: a test of this program fails without each of them.

use crate::{evidence, seal_order};
use mutation::Mutation;

#[test]
fn a_process_that_ignores_a_seal_is_noticed() {
    for (mutation, failure) in [
        (
            Mutation::FinalSnapshotBeforeSeal,
            "the final snapshot was taken before the seal",
        ),
        (Mutation::SealNotRead, "\"Serving\""),
    ] {
        mutation.assert_killed_by(
            seal_order::the_final_snapshot_waits_for_a_seal_that_no_restart_takes_back,
            failure,
        );
    }
}

#[test]
fn a_copy_that_brings_less_than_was_sealed_is_noticed() {
    Mutation::SealedRevisionIgnored.assert_killed_by(
        evidence::a_final_snapshot_that_is_gone_fails_the_copy_which_names_it_and_the_loss,
        "\"complete\":true",
    );
}
