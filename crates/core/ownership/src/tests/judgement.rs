//! The table of docs/understand/ownership.md, row by row.

use std::time::Duration;

use rstest::rstest;

use super::claim;
use crate::dns_verdict::DnsVerdict;
use crate::judgement::{OwnEpoch, by_record, by_second_witness, is_shown_by_second_witness};
use crate::{Answer, OwnershipLoss, Testimony};

fn owned(epoch: i64) -> Testimony {
    Testimony::Owned { epoch, left: None }
}

const LEFT: Option<Duration> = Some(Duration::from_secs(3));

/// An epoch without such knowledge.
const NOTHING: OwnEpoch = OwnEpoch {
    sealing_was_reported: false,
    may_show_previous_epoch: false,
};
const SEALING: OwnEpoch = OwnEpoch {
    sealing_was_reported: true,
    ..NOTHING
};
const FRESH: OwnEpoch = OwnEpoch {
    may_show_previous_epoch: true,
    ..NOTHING
};

fn another() -> OwnershipLoss {
    OwnershipLoss::AnotherIdentity("seed-b".to_owned())
}

fn deleted() -> DnsVerdict {
    DnsVerdict::Deleted("no identity".to_owned())
}

#[rstest]
#[case(NOTHING)]
#[case(SEALING)]
#[case(FRESH)]
fn a_record_that_decides_is_enough(#[case] own: OwnEpoch) {
    assert_eq!(
        by_record(DnsVerdict::Owned, own),
        Ok(Answer::Owned { at_most: None })
    );
    let later = OwnershipLoss::LaterEpoch(4);
    assert_eq!(
        by_record(DnsVerdict::Lost(later.clone()), own),
        Ok(Answer::Lost(later))
    );
    // Phase Sealing does not end the epoch beside a record that is merely silent.
    assert_eq!(
        by_record(DnsVerdict::Silent("why".to_owned()), own),
        Err("why".to_owned())
    );
}

/// R17-50.
#[test]
fn a_deleted_identity_is_a_loss_after_phase_sealing_and_a_question_before() {
    assert_eq!(
        by_record(deleted(), SEALING),
        Ok(Answer::Lost(OwnershipLoss::Deleted))
    );
    for own in [NOTHING, FRESH] {
        assert_eq!(by_record(deleted(), own), Err("no identity".to_owned()));
    }
    let decided = |testimony| by_second_witness(&claim(), "no identity", testimony);
    assert_eq!(decided(owned(3)), Answer::Owned { at_most: None });
    assert_eq!(
        decided(Testimony::Sealed { epoch: 3 }),
        Answer::Lost(OwnershipLoss::Sealed)
    );
    let later = Answer::Lost(OwnershipLoss::LaterEpoch(4));
    assert_eq!(decided(Testimony::Claimed { epoch: 4 }), later);
    for nothing in [Testimony::Missing, Testimony::Silent("cut off".to_owned())] {
        assert!(matches!(decided(nothing), Answer::Unknown(_)));
    }
}

/// A replica may be in the middle of the update that began the epoch.
#[test]
fn another_identity_beside_a_fresh_epoch_decides_nothing() {
    assert_eq!(
        by_record(DnsVerdict::Lost(another()), NOTHING),
        Ok(Answer::Lost(another()))
    );
    let fresh = by_record(DnsVerdict::Lost(another()), FRESH);
    assert!(matches!(fresh, Ok(Answer::Unknown(_))), "{fresh:?}");
}

#[rstest]
#[case::owned(owned(3), Answer::Owned { at_most: None })]
#[case::owned_and_passed_on(Testimony::Owned { epoch: 3, left: LEFT }, Answer::Owned { at_most: LEFT })]
#[case::sealed(Testimony::Sealed { epoch: 3 }, Answer::Lost(OwnershipLoss::Sealed))]
#[case::owned_later(owned(4), Answer::Lost(OwnershipLoss::LaterEpoch(4)))]
#[case::sealed_later(Testimony::Sealed { epoch: 4 }, Answer::Lost(OwnershipLoss::LaterEpoch(4)))]
#[case::claimed_later(Testimony::Claimed { epoch: 4 }, Answer::Lost(OwnershipLoss::LaterEpoch(4)))]
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
