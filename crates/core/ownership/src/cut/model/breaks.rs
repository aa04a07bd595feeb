//! Each test switches a single rule off and expects a fault, because a model that cannot fail proves no
//! property. Each test prints the shortest path.

use super::explore::without_rule;
use super::rules::CutRule;
use super::scenarios;
use super::state::{CIRCLE, FOREIGN, HISTORIES, LOST_WRITE, TWO_WRITERS, UNAVAILABLE};

const TWO_OWNERS: [&str; 3] = [TWO_WRITERS, HISTORIES, LOST_WRITE];
const DATA: [&str; 2] = [HISTORIES, LOST_WRITE];

#[test]
fn a_record_that_tests_nothing() {
    without_rule(CutRule::TestedRecord, scenarios::source_restarts(), &TWO_OWNERS);
}

#[test]
fn a_record_that_does_not_test_the_attempt() {
    without_rule(CutRule::TestedAttempt, scenarios::source_restarts(), &TWO_OWNERS);
}

#[test]
fn attempts_that_a_cancellation_resets() {
    let rule = CutRule::AttemptOutlivesCancellation;
    without_rule(rule, scenarios::cancellation(), &TWO_OWNERS);
}

#[test]
fn a_record_with_the_attempt_of_the_garden() {
    without_rule(
        CutRule::AttemptOfReport,
        scenarios::source_restarts(),
        &TWO_OWNERS,
    );
}

#[test]
fn a_mark_with_the_attempt_of_the_garden() {
    let rule = CutRule::MarkOfBegunAttempt;
    without_rule(rule, scenarios::source_volume(), &TWO_OWNERS);
    without_rule(rule, scenarios::deaths(), &[UNAVAILABLE]);
}

#[test]
fn a_source_that_opens_because_the_record_is_absent() {
    without_rule(CutRule::GivenUpByWrite, scenarios::source_restarts(), &TWO_OWNERS);
}

#[test]
fn a_mark_that_is_not_synced() {
    without_rule(CutRule::SyncedMark, scenarios::source_restarts(), &TWO_OWNERS);
}

#[test]
fn a_new_volume_without_a_read_of_the_bucket() {
    without_rule(CutRule::BucketIsRead, scenarios::source_volume(), &TWO_OWNERS);
}

#[test]
fn a_cut_before_the_attempt_is_in_the_bucket() {
    without_rule(CutRule::AttemptInBucket, scenarios::source_volume(), &TWO_OWNERS);
}

#[test]
fn a_new_volume_that_needs_only_an_answer_of_the_garden() {
    let rule = CutRule::NewVolumeNeedsLaterAttempt;
    without_rule(rule, scenarios::source_volume(), &TWO_OWNERS);
}

#[test]
fn an_end_that_is_read_without_a_hold() {
    without_rule(CutRule::HoldBeforeEnd, scenarios::source_restarts(), &DATA);
}

#[test]
fn an_end_that_is_read_while_writes_are_under_way() {
    without_rule(CutRule::WritesEnd, scenarios::source_restarts(), &DATA);
}

#[test]
fn streams_that_show_revisions_after_the_end() {
    without_rule(CutRule::StreamsEnd, scenarios::leases(), &DATA);
}

#[test]
fn a_transaction_that_was_not_answered() {
    without_rule(CutRule::LastTransactionAnswered, scenarios::leases(), &DATA);
}

#[test]
fn a_follower_that_goes_on_after_the_proof() {
    without_rule(CutRule::FollowerCloses, scenarios::leases(), &[FOREIGN]);
}

#[test]
fn revisions_without_digests() {
    without_rule(CutRule::DigestCompared, scenarios::leases(), &DATA);
}

#[test]
fn a_restore_that_reuses_revisions() {
    without_rule(CutRule::SkippedRevisions, scenarios::source_volume(), &DATA);
}

#[test]
fn a_destination_that_opens_without_the_proof() {
    without_rule(
        CutRule::ProofMatchesRecord,
        scenarios::destination_volume(),
        &DATA,
    );
}

#[test]
fn a_proof_in_memory() {
    // A destination that has opened, and copies again, loses its own writes.
    let reasons = [UNAVAILABLE, LOST_WRITE];
    without_rule(CutRule::SyncedProof, scenarios::deaths(), &reasons);
}

#[test]
fn a_proof_that_is_given_up_before_the_attempt() {
    without_rule(
        CutRule::ProofKeptUntilGivenUp,
        scenarios::deaths(),
        &[UNAVAILABLE],
    );
}

#[test]
fn a_destination_that_cannot_follow_again() {
    without_rule(
        CutRule::FollowsAgain,
        scenarios::destination_volume(),
        &[UNAVAILABLE],
    );
}

#[test]
fn a_source_that_deletes_its_data_early() {
    let rule = CutRule::DataKeptUntilUploaded;
    without_rule(rule, scenarios::destination_volume(), &[UNAVAILABLE]);
}

#[test]
fn forwarding_that_ends_with_the_former_epoch() {
    let rule = CutRule::ForwardingOutlivesLost;
    without_rule(rule, scenarios::links(), &[UNAVAILABLE]);
}

#[test]
fn requests_that_are_forwarded_to_any_epoch() {
    without_rule(CutRule::ForwardedToLaterEpoch, scenarios::forwarding(), &[CIRCLE]);
}

#[test]
fn requests_that_are_forwarded_once() {
    without_rule(CutRule::ForwardedTwice, scenarios::forwarding(), &[UNAVAILABLE]);
}

#[test]
fn forwarding_without_a_permit_of_the_destination() {
    without_rule(CutRule::RelayedPermit, scenarios::takeover(), &[TWO_WRITERS]);
}

#[test]
fn a_permit_that_counts_from_the_answer() {
    without_rule(CutRule::PermitFromSending, scenarios::takeover(), &[TWO_WRITERS]);
}

#[test]
fn a_record_that_is_read_from_a_cache() {
    without_rule(CutRule::FreshRead, scenarios::takeover(), &[TWO_WRITERS]);
}

#[test]
fn a_fence_of_the_third_seed_without_drift() {
    without_rule(CutRule::DriftInFence, scenarios::drift(), &[TWO_WRITERS]);
}
