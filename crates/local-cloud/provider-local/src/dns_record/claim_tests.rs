//! Every readable state, with the result (R17-10, R17-12, R17-50).
#![allow(clippy::unwrap_used)]

use api::meta::ErrorCode;
use serde_json::json;

use super::*;

const NAME: &str = "owner.one.dev.internal.example";

fn record(epoch: &str, values: &[&str]) -> DNSRecord {
    serde_json::from_value(json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "DNSRecord",
        "metadata": {"name": "one-owner", "annotations": {OWNERSHIP_EPOCH: epoch}},
        "spec": {"type": "local", "secretRef": {"name": "s"}, "name": NAME, "recordType": "TXT", "values": values},
    }))
    .unwrap()
}

/// Seed a in epoch 3.
fn claim() -> RecordClaim {
    RecordClaim::from_record(&record("3", &["seed-a"]))
        .unwrap()
        .unwrap()
}

fn text(text: &str) -> TextRecord {
    TextRecord::Text(text.into())
}

fn text_of(found: &TextRecord) -> Option<String> {
    match found {
        TextRecord::Text(text) => Some(text.clone()),
        TextRecord::Nothing | TextRecord::Other(_) => None,
    }
}

/// The texts of both names afterwards: epoch and owner.
fn after(changes: Option<Changes>) -> Option<[Option<String>; 2]> {
    changes.map(|changes| changes.map(|change| change.becomes))
}

fn both(epoch: &str, owner: &str) -> [Option<String>; 2] {
    [epoch, owner].map(|text| Some(text.to_owned()).filter(|text| !text.is_empty()))
}

#[test]
fn an_earlier_epoch_is_followed_and_both_names_change_from_what_was_read() {
    let read = [
        (TextRecord::Nothing, TextRecord::Nothing),
        (text("2"), text("seed-b")),
        (text("2"), text("seed-a")),
        // Deleted by a planned move.
        (text("2"), TextRecord::Nothing),
    ];
    for (epoch, owner) in read {
        let changes = claim().write(&epoch, &owner).unwrap().unwrap();
        assert_eq!(changes.clone().map(|it| it.was), [&epoch, &owner].map(text_of));
        assert_eq!(
            after(Some(changes)),
            Some(both("3", "seed-a")),
            "{epoch:?} {owner:?}"
        );
    }
}

#[test]
fn what_is_written_already_is_not_written_again() {
    assert_eq!(claim().write(&text("3"), &text("seed-a")).unwrap(), None);
}

/// A process that wakes late cannot undo a hand-over.
#[test]
fn an_epoch_that_is_over_does_not_come_back() {
    let refused = [
        (text("4"), text("seed-b"), "went on elsewhere"),
        (text("4"), text("seed-a"), "went on elsewhere"),
        (text("4"), TextRecord::Nothing, "nobody's"),
        (text("3"), text("seed-b"), "an epoch has one owner"),
        (text("3"), TextRecord::Nothing, "ended for ever"),
        (text("9223372036854775807"), text("seed-b"), "went on elsewhere"),
    ];
    for (epoch, owner, part) in refused {
        let error = claim().write(&epoch, &owner).unwrap_err();
        assert_eq!(error.codes(), [ErrorCode::ErrConfigurationProblem]);
        assert!(!error.is_retryable(), "{error}");
        let told = error.to_string();
        assert!(told.contains(part) && told.contains(NAME), "{told}");
    }
}

#[test]
fn a_record_that_is_replaced_whatever_it_says_is_noticed() {
    Mutation::OwnerRecordReplaced.assert_killed_by(an_epoch_that_is_over_does_not_come_back, "unwrap_err");
}

#[test]
fn what_is_not_ours_is_named_and_left_alone() {
    let other = |what: &str| TextRecord::Other(what.into());
    let strange = [
        (TextRecord::Nothing, text("seed-b"), "has no epoch"),
        (TextRecord::Nothing, text("seed-a"), "has no epoch"),
        (TextRecord::Nothing, text("v=spf1 -all"), "is no seed identity"),
        (text("2"), text("\"seed-b\""), "is no seed identity"),
        (text("2"), other("has 2 texts instead of one"), "2 texts"),
        (
            other("is an alias"),
            TextRecord::Nothing,
            "epoch.owner.one.dev.internal.example. is an alias",
        ),
        (text("two"), text("seed-b"), "is no epoch"),
        (text("02"), text("seed-b"), "is no epoch"),
        (text("-1"), text("seed-b"), "is no epoch"),
        (text("0"), text("seed-b"), "is no epoch"),
        (text(""), text("seed-b"), "is no epoch"),
        (text("9223372036854775808"), text("seed-b"), "is no epoch"),
    ];
    for (epoch, owner, part) in strange {
        let error = claim().write(&epoch, &owner).unwrap_err();
        assert_eq!(error.codes(), [ErrorCode::ErrConfigurationProblem]);
        assert!(error.to_string().contains(part), "{error}");
        if !matches!((&epoch, &owner), (TextRecord::Nothing, TextRecord::Text(_))) {
            assert_eq!(
                claim().forgotten().remove(&epoch, &owner),
                None,
                "{epoch:?} {owner:?}"
            );
        }
        assert_eq!(claim().remove(&epoch, &owner), None, "{epoch:?} {owner:?}");
    }
}

#[test]
fn a_removal_leaves_the_epoch_and_whatever_is_not_ours() {
    assert_eq!(
        after(claim().remove(&text("3"), &text("seed-a"))),
        Some(both("3", ""))
    );
    for (epoch, owner) in [
        (text("3"), TextRecord::Nothing),
        (text("3"), text("seed-b")),
        (text("4"), text("seed-a")),
        (text("4"), text("seed-b")),
        (text("2"), text("seed-a")),
        (TextRecord::Nothing, text("seed-a")),
        (TextRecord::Nothing, TextRecord::Nothing),
    ] {
        assert_eq!(claim().remove(&epoch, &owner), None, "{epoch:?} {owner:?}");
    }
}

#[test]
fn a_shoot_that_goes_takes_its_epoch_along() {
    let gone = Some([None, None]);
    let forgotten = claim().forgotten();
    for (epoch, owner) in [
        (text("3"), text("seed-a")),
        (text("3"), TextRecord::Nothing),
        (text("2"), text("seed-a")),
        (text("2"), TextRecord::Nothing),
    ] {
        assert_eq!(
            after(forgotten.remove(&epoch, &owner)),
            gone,
            "{epoch:?} {owner:?}"
        );
    }
    for (epoch, owner) in [
        (text("3"), text("seed-b")),
        (text("2"), text("seed-b")),
        (text("4"), text("seed-a")),
        (text("4"), TextRecord::Nothing),
        (TextRecord::Nothing, TextRecord::Nothing),
    ] {
        assert_eq!(forgotten.remove(&epoch, &owner), None, "{epoch:?} {owner:?}");
    }
    let mut annotated = record("3", &["seed-a"]);
    annotated
        .annotations_mut()
        .insert(OWNERSHIP_FORGOTTEN.into(), "true".into());
    assert_eq!(
        RecordClaim::from_record(&annotated).unwrap(),
        Some(claim().forgotten())
    );
}

#[test]
fn a_claim_that_no_record_could_hold_is_refused() {
    let mut ordinary = record("3", &["seed-a"]);
    ordinary.metadata.annotations = None;
    assert_eq!(RecordClaim::from_record(&ordinary).unwrap(), None);
    for epoch in ["", "0", "-1", "03", "+3", "3 ", "three", "9223372036854775808"] {
        let told = RecordClaim::from_record(&record(epoch, &["seed-a"]))
            .unwrap_err()
            .to_string();
        assert!(told.contains(OWNERSHIP_EPOCH), "{told}");
    }
    let long = "x".repeat(256);
    for values in [
        vec![],
        vec!["seed-a", "seed-b"],
        vec![""],
        vec!["seed a"],
        vec!["\"a\""],
        vec![long.as_str()],
    ] {
        assert!(
            RecordClaim::from_record(&record("3", &values)).is_err(),
            "{values:?}"
        );
    }
    // 255 bytes are a valid name, but leave no room for the epoch label.
    let mut long = record("3", &["seed-a"]);
    long.spec.name = [
        ["x"; 63].concat(),
        ["y"; 63].concat(),
        ["z"; 63].concat(),
        ["w"; 58].concat(),
    ]
    .join(".");
    let told = RecordClaim::from_record(&long).unwrap_err().to_string();
    assert!(told.contains("no room"), "{told}");
}
