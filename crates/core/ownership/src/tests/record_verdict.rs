//! Valid claims, and the meaning of a single authority's answers (R17-10, R17-14).

use rstest::rstest;

use super::claim;
use crate::claim::epoch_of;
use crate::record_verdict::{
    RecordVerdict, from_earlier_owner_reply, from_epoch_reply, from_owner_reply, shows_earlier_epoch,
};
use crate::reply::Reply;
use crate::{ClaimError, OwnershipClaim, OwnershipLoss};

fn text(text: &str) -> Reply {
    Reply::Text(text.to_owned())
}

#[rstest]
#[case::mine("3", None)]
#[case::later("4", Some(RecordVerdict::NotMine(OwnershipLoss::LaterEpoch(4))))]
#[case::much_later("12", Some(RecordVerdict::NotMine(OwnershipLoss::LaterEpoch(12))))]
#[case::earlier("2", Some(RecordVerdict::Undecided("it is still at epoch 2".to_owned())))]
#[case::first("1", Some(RecordVerdict::Undecided("it is still at epoch 1".to_owned())))]
fn the_epoch_decides_unless_it_is_mine(#[case] epoch: &str, #[case] expected: Option<RecordVerdict>) {
    assert_eq!(from_epoch_reply(&claim(), &text(epoch)), expected);
}

#[rstest]
#[case("")]
#[case("0")]
#[case("03")]
#[case("+4")]
#[case("-4")]
#[case(" 4")]
#[case("\"4\"")]
#[case("4.0")]
#[case("four")]
#[case("\u{0664}")]
#[case("9223372036854775808")]
fn what_is_no_epoch_takes_nothing_from_anybody(#[case] epoch: &str) {
    assert_eq!(epoch_of(epoch), None);
    let said = from_epoch_reply(&claim(), &text(epoch));
    assert!(matches!(said, Some(RecordVerdict::Undecided(_))), "{said:?}");
}

#[test]
fn a_missing_epoch_is_no_loss_whatever_identity_is_there() {
    let said = from_epoch_reply(&claim(), &Reply::NoText);
    assert_eq!(
        said,
        Some(RecordVerdict::Undecided("there is no epoch".to_owned()))
    );
}

/// A source without owner checks leaves the epoch of an earlier owner in the record, without an identity.
#[test]
fn an_identity_beside_an_earlier_epoch_is_of_an_owner_that_has_not_stopped() {
    for (epoch, expected) in [("2", true), ("3", false), ("4", false), ("02", false)] {
        assert_eq!(shows_earlier_epoch(&claim(), &text(epoch)), expected, "{epoch}");
    }
    assert!(!shows_earlier_epoch(&claim(), &Reply::NoText));
    for owner in ["seed-a", "seed-b"] {
        assert_eq!(
            from_earlier_owner_reply(&text(owner)),
            RecordVerdict::EarlierOwner(owner.to_owned())
        );
    }
    for reply in [Reply::NoText, text("seed b"), Reply::Unusable("two".to_owned())] {
        let said = from_earlier_owner_reply(&reply);
        assert!(matches!(said, RecordVerdict::Undecided(_)), "{said:?}");
    }
    let silent = Reply::Silent("SERVFAIL".to_owned());
    assert_eq!(
        from_earlier_owner_reply(&silent),
        RecordVerdict::Silent("SERVFAIL".to_owned())
    );
}

#[rstest]
#[case::mine(text("seed-a"), RecordVerdict::Mine)]
#[case::another(text("seed-b"), RecordVerdict::NotMine(OwnershipLoss::AnotherIdentity("seed-b".to_owned())))]
#[case::mine_in_capitals(text("SEED-A"), RecordVerdict::NotMine(OwnershipLoss::AnotherIdentity("SEED-A".to_owned())))]
#[case::deleted(Reply::NoText, RecordVerdict::Deleted)]
#[case::silent(Reply::Silent("SERVFAIL".to_owned()), RecordVerdict::Silent("SERVFAIL".to_owned()))]
#[case::several(Reply::Unusable("two".to_owned()), RecordVerdict::Undecided("two".to_owned()))]
fn beside_my_epoch_the_identity_decides(#[case] owner: Reply, #[case] expected: RecordVerdict) {
    assert_eq!(from_owner_reply(&claim(), &owner), expected);
}

#[rstest]
#[case("")]
#[case("\"seed-a\"")]
#[case("\"seed-b\"")]
#[case("seed-b ")]
#[case("seed b")]
#[case("seed-b\n")]
#[case("seed\\-b")]
#[case("s\u{00e9}ed-b")]
fn a_damaged_identity_takes_nothing_from_anybody(#[case] owner: &str) {
    let said = from_owner_reply(&claim(), &text(owner));
    assert!(matches!(said, RecordVerdict::Undecided(_)), "{said:?}");
}

#[test]
fn a_huge_value_takes_nothing_from_anybody_and_does_not_fill_a_message() {
    let RecordVerdict::Undecided(why) = from_owner_reply(&claim(), &text(&"x".repeat(60_000))) else {
        panic!("it decided something");
    };
    assert!(why.len() < 200, "{why}");
}

#[test]
fn a_claim_has_a_name_an_identity_and_an_epoch() {
    let new = OwnershipClaim::new;
    let claim = new("owner.demo.dev.internal.example.", "seed-a", 3).unwrap();
    assert_eq!(claim, self::claim());
    assert_eq!(claim.epoch_name(), "epoch.owner.demo.dev.internal.example.");
    assert_eq!(claim.epoch(), 3);
    assert!(matches!(new("", "a", 1), Err(ClaimError::Name { .. })));
    assert!(matches!(new(".", "a", 1), Err(ClaimError::Name { .. })));
    assert!(matches!(new("a..b", "a", 1), Err(ClaimError::Name { .. })));
    // 250 bytes: a valid name, but without room for the epoch's label.
    let long = ["x".repeat(49).as_str(); 5].join(".");
    assert!(matches!(new(&long, "a", 1), Err(ClaimError::Name { .. })));
    assert_eq!(new("a.b", "", 1), Err(ClaimError::Identity(String::new())));
    assert_eq!(new("a.b", "a b", 1), Err(ClaimError::Identity("a b".to_owned())));
    assert_eq!(new("a.b", "a", 0), Err(ClaimError::Epoch(0)));
}
