//! The table of docs/ownership.md, row by row.

use std::time::Duration;

use rstest::rstest;

use super::claim;
use crate::agreement::Dns;
use crate::judgement::{by_record, by_second_witness, is_shown_by_second_witness};
use crate::{Answer, Loss, Testimony};

fn owned(epoch: i64) -> Testimony {
    Testimony::Owned { epoch, left: None }
}

const LEFT: Option<Duration> = Some(Duration::from_secs(3));

#[test]
fn a_record_that_decides_is_enough() {
    assert_eq!(by_record(Dns::Owned), Ok(Answer::Owned { at_most: None }));
    assert_eq!(
        by_record(Dns::Lost(Loss::Deleted)),
        Ok(Answer::Lost(Loss::Deleted))
    );
    assert_eq!(by_record(Dns::Silent("why".to_owned())), Err("why".to_owned()));
}

#[rstest]
#[case::owned(owned(3), Answer::Owned { at_most: None })]
#[case::owned_and_passed_on(Testimony::Owned { epoch: 3, left: LEFT }, Answer::Owned { at_most: LEFT })]
#[case::sealed(Testimony::Sealed { epoch: 3 }, Answer::Lost(Loss::Sealed))]
#[case::owned_later(owned(4), Answer::Lost(Loss::LaterEpoch(4)))]
#[case::sealed_later(Testimony::Sealed { epoch: 4 }, Answer::Lost(Loss::LaterEpoch(4)))]
#[case::claimed_later(Testimony::Claimed { epoch: 4 }, Answer::Lost(Loss::LaterEpoch(4)))]
fn where_the_record_is_silent_the_second_witness_decides(
    #[case] testimony: Testimony,
    #[case] expected: Answer,
) {
    assert_eq!(by_second_witness(&claim(), "silent", testimony), expected);
}

#[rstest]
#[case::owned_earlier(owned(2))]
#[case::owned_earlier_and_passed_on(Testimony::Owned { epoch: 2, left: LEFT })]
#[case::sealed_earlier(Testimony::Sealed { epoch: 2 })]
#[case::claimed_earlier(Testimony::Claimed { epoch: 2 })]
#[case::claimed_and_not_opened(Testimony::Claimed { epoch: 3 })]
#[case::missing(Testimony::Missing)]
#[case::silent(Testimony::Silent("no answer".to_owned()))]
fn where_both_are_silent_nobody_knows(#[case] testimony: Testimony) {
    let Answer::Unknown(why) = by_second_witness(&claim(), "SERVFAIL", testimony) else {
        panic!("it was decided");
    };
    assert!(why.starts_with("SERVFAIL; and the second witness: "), "{why}");
}

#[rstest]
#[case(Testimony::Claimed { epoch: 3 }, true)]
#[case(owned(3), true)]
#[case(owned(2), false)]
#[case(Testimony::Sealed { epoch: 2 }, false)]
#[case(Testimony::Claimed { epoch: 4 }, false)]
#[case(Testimony::Missing, false)]
#[case(Testimony::Silent("no answer".to_owned()), false)]
fn a_fence_begins_when_the_second_witness_shows_it_too(#[case] testimony: Testimony, #[case] expected: bool) {
    assert_eq!(is_shown_by_second_witness(&claim(), &testimony).is_ok(), expected);
}
