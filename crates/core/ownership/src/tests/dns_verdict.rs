//! The combined answer of authorities.

use std::net::SocketAddr;

use rstest::rstest;

use crate::dns_verdict::{
    DnsVerdict, combine, is_shown_everywhere, judge_hand_over, lets_an_epoch_end, names_another_owner,
    shows_own_epoch,
};
use crate::record_verdict::RecordVerdict;
use crate::{HandOverTestimony, OwnershipLoss};
use HandOverTestimony::{Confirmed, Contradicted, Unknown};
use RecordVerdict::{Deleted, Mine};

fn another() -> RecordVerdict {
    RecordVerdict::NotMine(OwnershipLoss::AnotherIdentity("seed-b".to_owned()))
}

fn later() -> RecordVerdict {
    RecordVerdict::NotMine(OwnershipLoss::LaterEpoch(4))
}

fn earlier() -> RecordVerdict {
    RecordVerdict::EarlierOwner("seed-c".to_owned())
}

fn behind() -> RecordVerdict {
    RecordVerdict::Undecided("it is still at epoch 2".to_owned())
}

fn silent() -> RecordVerdict {
    RecordVerdict::Silent("SERVFAIL".to_owned())
}

fn together(verdicts: &[RecordVerdict]) -> DnsVerdict {
    combine(&numbered(verdicts))
}

fn numbered(verdicts: &[RecordVerdict]) -> Vec<(SocketAddr, RecordVerdict)> {
    let server = |number: usize| SocketAddr::from(([192, 0, 2, u8::try_from(number).unwrap()], 53));
    verdicts
        .iter()
        .enumerate()
        .map(|(number, verdict)| (server(number), verdict.clone()))
        .collect()
}

#[rstest]
#[case::one(&[Mine])]
#[case::all(&[Mine, Mine, Mine])]
#[case::one_answers(&[silent(), Mine, silent()])]
fn owned_if_all_that_answer_say_so(#[case] verdicts: &[RecordVerdict]) {
    assert_eq!(together(verdicts), DnsVerdict::Owned);
}

#[rstest]
#[case::one(&[another()], OwnershipLoss::AnotherIdentity("seed-b".to_owned()))]
#[case::one_answers(&[silent(), later()], OwnershipLoss::LaterEpoch(4))]
#[case::they_are_not_equally_far(&[Deleted, later(), another()], OwnershipLoss::LaterEpoch(4))]
#[case::a_later_epoch_is_certain_where_an_identity_may_be_old(&[another(), later()], OwnershipLoss::LaterEpoch(4))]
#[case::deleted_at_the_first(&[Deleted, another()], OwnershipLoss::AnotherIdentity("seed-b".to_owned()))]
fn lost_if_all_that_answer_say_so(#[case] verdicts: &[RecordVerdict], #[case] loss: OwnershipLoss) {
    assert_eq!(together(verdicts), DnsVerdict::Lost(loss));
}

/// A deleted identity alone is not a loss.
#[rstest]
#[case::one(&[Deleted])]
#[case::all(&[Deleted, Deleted])]
#[case::one_answers(&[silent(), Deleted, silent()])]
fn deleted_if_all_that_answer_show_no_identity(#[case] verdicts: &[RecordVerdict]) {
    let dns = together(verdicts);
    assert!(matches!(dns, DnsVerdict::Deleted(_)), "{dns:?}");
}

#[rstest]
#[case::nobody(&[])]
#[case::nobody_answers(&[silent(), silent()])]
#[case::an_update_is_under_way(&[Mine, later()])]
#[case::a_deletion_is_under_way(&[Mine, Deleted])]
#[case::one_is_behind_a_deletion(&[Deleted, behind()])]
#[case::one_is_behind(&[Mine, behind()])]
#[case::one_is_behind_and_one_ahead(&[behind(), later()])]
#[case::all_are_behind(&[behind(), behind(), silent()])]
fn silent_in_all_other_cases(#[case] verdicts: &[RecordVerdict]) {
    let dns = together(verdicts);
    assert!(matches!(dns, DnsVerdict::Silent(_)), "{dns:?}");
}

#[test]
fn a_disagreement_says_who_said_what() {
    assert_eq!(
        together(&[Mine, later(), silent()]),
        DnsVerdict::Silent(
            "the authorities disagree: 192.0.2.0:53: mine; 192.0.2.1:53: epoch 4 has begun; 192.0.2.2:53: SERVFAIL"
                .to_owned()
        )
    );
}

/// A silent server may still show the former owner to other clients.
#[rstest]
#[case::all(&[Mine, Mine], true)]
#[case::nobody(&[], false)]
#[case::one_is_silent(&[Mine, silent()], false)]
#[case::one_is_behind(&[Mine, behind()], false)]
#[case::taken_over_again(&[Mine, later()], false)]
#[case::deleted_again(&[Mine, Deleted], false)]
fn a_fence_begins_when_all_show_it(#[case] verdicts: &[RecordVerdict], #[case] expected: bool) {
    assert_eq!(is_shown_everywhere(&numbered(verdicts)).is_ok(), expected);
}

/// A planned move must not stop the API while a server holds up the end of the epoch or is down.
#[rstest]
#[case::all(&[Mine, Mine], true)]
#[case::one_is_down(&[Mine, silent()], true)]
#[case::all_are_down(&[silent(), silent()], true)]
#[case::nobody(&[], true)]
#[case::deleted_by_a_slip(&[Deleted, Deleted, silent()], true)]
#[case::one_still_has_what_was_deleted(&[Deleted, Mine], false)]
#[case::one_is_behind(&[Mine, behind()], false)]
#[case::all_are_behind(&[behind(), silent()], false)]
#[case::one_names_another_seed(&[Mine, another()], false)]
#[case::a_later_epoch_has_begun(&[later(), silent()], false)]
fn an_epoch_ends_where_no_server_that_answers_contradicts(
    #[case] verdicts: &[RecordVerdict],
    #[case] expected: bool,
) {
    assert_eq!(lets_an_epoch_end(&numbered(verdicts)).is_ok(), expected);
}

#[rstest]
#[case::mine(&[silent(), Mine], true)]
#[case::deleted(&[Deleted], true)]
#[case::another_identity(&[another()], true)]
#[case::nobody(&[], false)]
#[case::not_yet(&[behind(), silent()], false)]
#[case::not_any_more(&[later()], false)]
fn an_epoch_is_seen_where_a_server_shows_it(#[case] verdicts: &[RecordVerdict], #[case] expected: bool) {
    assert_eq!(shows_own_epoch(&numbered(verdicts)), expected);
}

/// A former claimant deletes its part of a shoot only with the proof of a present owner elsewhere.
#[rstest]
#[case::another(&[another()], true)]
#[case::all(&[another(), another()], true)]
#[case::one_is_down(&[another(), silent()], true)]
#[case::nobody(&[], false)]
#[case::all_are_down(&[silent()], false)]
#[case::the_successor_has_not_written_the_record(&[behind()], false)]
#[case::one_is_behind(&[another(), behind()], false)]
#[case::deleted(&[Deleted], false)]
#[case::the_seed_has_the_shoot(&[Mine], false)]
#[case::one_shows_that_the_seed_has_the_shoot(&[another(), Mine], false)]
#[case::the_garden_is_older_than_the_record(&[later()], false)]
#[case::one_shows_that_the_garden_is_older(&[another(), later()], false)]
fn another_owner_is_proved_in_exactly_the_epoch_of_the_garden(
    #[case] said: &[RecordVerdict],
    #[case] expected: bool,
) {
    assert_eq!(names_another_owner(&numbered(said)).is_ok(), expected);
}

/// A planned move waits for no fence because of a server that is behind.
#[rstest]
#[case::the_source_runs(&[another(), another()], Contradicted)]
#[case::one_is_down(&[another(), silent()], Contradicted)]
#[case::the_source_has_stopped(&[Deleted], Confirmed)]
#[case::one_is_behind(&[another(), Deleted, another()], Confirmed)]
#[case::one_does_not_know_the_epoch(&[Deleted, behind()], Confirmed)]
#[case::a_later_epoch(&[another(), later()], Confirmed)]
#[case::nobody(&[], Unknown)]
#[case::all_are_down(&[silent(), silent()], Unknown)]
#[case::all_have_an_earlier_epoch(&[behind(), behind()], Unknown)]
#[case::one_has_no_epoch_yet_and_one_names_the_source(&[another(), behind()], Contradicted)]
#[case::all_are_behind(&[behind(), silent()], Unknown)]
#[case::the_source_has_never_published(&[earlier(), earlier()], Contradicted)]
#[case::the_source_has_never_published_and_one_is_down(&[silent(), earlier()], Contradicted)]
#[case::an_earlier_owner_has_stopped(&[earlier(), behind()], Unknown)]
#[case::one_has_an_earlier_owner(&[earlier(), Deleted], Confirmed)]
#[case::one_has_an_earlier_owner_and_one_names_the_source(&[earlier(), another()], Contradicted)]
#[case::the_identity_of_the_destination(&[Mine, silent()], Contradicted)]
#[case::the_identity_of_the_destination_in_one_server(&[Mine, another()], Contradicted)]
#[case::one_has_the_identity_of_the_destination(&[Mine, later()], Confirmed)]
fn a_single_server_confirms_a_hand_over(#[case] said: &[RecordVerdict], #[case] expected: HandOverTestimony) {
    assert_eq!(judge_hand_over(&numbered(said)), expected);
}
