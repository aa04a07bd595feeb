//! The combined answer of authorities.

use std::net::SocketAddr;

use rstest::rstest;

use crate::Loss;
use crate::agreement::{Dns, combine, is_shown_everywhere, lets_an_epoch_end, shows_own_epoch};
use crate::saying::Saying;
use Saying::{Deleted, Mine};

fn another() -> Saying {
    Saying::NotMine(Loss::AnotherIdentity("seed-b".to_owned()))
}

fn later() -> Saying {
    Saying::NotMine(Loss::LaterEpoch(4))
}

fn behind() -> Saying {
    Saying::Nothing("it is still at epoch 2".to_owned())
}

fn silent() -> Saying {
    Saying::Silent("SERVFAIL".to_owned())
}

fn together(said: &[Saying]) -> Dns {
    combine(&numbered(said))
}

fn numbered(said: &[Saying]) -> Vec<(SocketAddr, Saying)> {
    let server = |number: usize| SocketAddr::from(([192, 0, 2, u8::try_from(number).unwrap()], 53));
    said.iter()
        .enumerate()
        .map(|(number, saying)| (server(number), saying.clone()))
        .collect()
}

#[rstest]
#[case::one(&[Mine])]
#[case::all(&[Mine, Mine, Mine])]
#[case::one_answers(&[silent(), Mine, silent()])]
fn owned_if_all_that_answer_say_so(#[case] said: &[Saying]) {
    assert_eq!(together(said), Dns::Owned);
}

#[rstest]
#[case::one(&[another()], Loss::AnotherIdentity("seed-b".to_owned()))]
#[case::one_answers(&[silent(), later()], Loss::LaterEpoch(4))]
#[case::they_are_not_equally_far(&[Deleted, later(), another()], Loss::LaterEpoch(4))]
#[case::a_later_epoch_is_certain_where_an_identity_may_be_old(&[another(), later()], Loss::LaterEpoch(4))]
#[case::deleted_at_the_first(&[Deleted, another()], Loss::AnotherIdentity("seed-b".to_owned()))]
fn lost_if_all_that_answer_say_so(#[case] said: &[Saying], #[case] loss: Loss) {
    assert_eq!(together(said), Dns::Lost(loss));
}

/// A deleted identity alone is not a loss.
#[rstest]
#[case::one(&[Deleted])]
#[case::all(&[Deleted, Deleted])]
#[case::one_answers(&[silent(), Deleted, silent()])]
fn deleted_if_all_that_answer_show_no_identity(#[case] said: &[Saying]) {
    let dns = together(said);
    assert!(matches!(dns, Dns::Deleted(_)), "{dns:?}");
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
fn silent_in_all_other_cases(#[case] said: &[Saying]) {
    let dns = together(said);
    assert!(matches!(dns, Dns::Silent(_)), "{dns:?}");
}

#[test]
fn a_disagreement_says_who_said_what() {
    assert_eq!(
        together(&[Mine, later(), silent()]),
        Dns::Silent(
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
fn a_fence_begins_when_all_show_it(#[case] said: &[Saying], #[case] expected: bool) {
    assert_eq!(is_shown_everywhere(&numbered(said)).is_ok(), expected);
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
fn an_epoch_ends_where_no_server_that_answers_contradicts(#[case] said: &[Saying], #[case] expected: bool) {
    assert_eq!(lets_an_epoch_end(&numbered(said)).is_ok(), expected);
}

#[rstest]
#[case::mine(&[silent(), Mine], true)]
#[case::deleted(&[Deleted], true)]
#[case::another_identity(&[another()], true)]
#[case::nobody(&[], false)]
#[case::not_yet(&[behind(), silent()], false)]
#[case::not_any_more(&[later()], false)]
fn an_epoch_is_seen_where_a_server_shows_it(#[case] said: &[Saying], #[case] expected: bool) {
    assert_eq!(shows_own_epoch(&numbered(said)), expected);
}
