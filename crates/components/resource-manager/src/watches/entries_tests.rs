#![allow(clippy::unwrap_used)]
use super::*;
use crate::live::Live;
use serde_json::json;

fn owner(name: &str) -> Owner {
    Owner {
        in_seed: false,
        namespace: "n".to_owned(),
        name: name.to_owned(),
    }
}

/// The marks of an object with this uid, this field of this process, and this label.
fn marks(uid: &str, field: &str, label: &str) -> Marks {
    let live: Live = serde_json::from_value(json!({"metadata": {"uid": uid, "labels": {"a": label}, "managedFields": [
        {"manager": "somebody", "operation": "Update", "fieldsV1": {"f:x": {"f:replicas": {}}}},
        {"manager": "resource-manager", "operation": "Update", "subresource": "status", "fieldsV1": {"f:y": {}}},
        {"manager": "resource-manager", "operation": "Apply", "fieldsV1": {field: {}}},
    ]}}))
    .unwrap();
    live.marks()
}

fn observed(marks: Marks, wrong: Option<&str>) -> WatchedObject {
    WatchedObject {
        owner: owner("a"),
        marks,
        health: Health {
            wrong: wrong.map(Into::into),
            rolls: None,
        },
        version: 0,
    }
}

fn listed() -> Entries {
    let mut entries = Entries::default();
    entries.list_begins();
    assert_eq!(entries.list_ends(), []);
    entries
}

#[test]
fn a_change_by_somebody_else_is_noticed_and_ones_own_is_not() {
    let mut entries = listed();
    let ours = marks("1", "f:data", "b");
    entries.applied(None, "o", &owner("a"), (ours, 0), false);
    assert_eq!(
        entries.sees(None, "o", observed(ours, None)),
        Some(Event::Judged(owner("a"))),
        "for the first time"
    );
    assert_eq!(entries.sees(None, "o", observed(ours, None)), None);
    assert_eq!(
        entries.sees(None, "o", observed(marks("1", "f:data", "x"), None)),
        None,
        "a label of somebody"
    );
    let drifted = Some(Event::Drifted(owner("a")));
    assert_eq!(
        entries.sees(None, "o", observed(marks("1", "f:less", "b"), None)),
        drifted,
        "a field was taken from us"
    );
    assert_eq!(
        entries.sees(None, "o", observed(marks("2", "f:data", "b"), None)),
        drifted,
        "another object of that name"
    );
    entries.applied(None, "o", &owner("a"), (ours, 0), true);
    assert_eq!(
        entries.sees(None, "o", observed(marks("1", "f:data", "x"), None)),
        drifted,
        "a label that is not borne"
    );
}

/// The watch may show a write by another writer before the answer to the application arrives.
#[test]
fn a_change_before_the_answer_to_the_application_is_noticed() {
    let (ours, less) = (marks("1", "f:data", "b"), marks("1", "f:less", "b"));
    let drifted = Some(Event::Drifted(owner("a")));
    // The application has version 7.
    let noticed = |version: u64, marks: Marks| {
        let mut entries = listed();
        let seen = WatchedObject {
            version,
            ..observed(marks, None)
        };
        entries.sees(None, "o", seen);
        entries.applied(None, "o", &owner("a"), (ours, 7), false)
    };
    assert_eq!(noticed(8, less), drifted);
    assert_eq!(noticed(8, ours), None, "a status");
    assert_eq!(noticed(7, ours), None, "the own write");
    assert_eq!(noticed(6, less), None, "the object before the application");
    assert_eq!(noticed(0, less), None, "an API server without numbers");
}

#[test]
fn health_is_told_when_it_changes() {
    let (mut entries, ours) = (listed(), marks("1", "f:data", "b"));
    assert_eq!(entries.state(None, "o"), State::Missing);
    entries.sees(None, "o", observed(ours, None));
    assert_eq!(
        entries.sees(None, "o", observed(ours, Some("ill"))),
        Some(Event::Judged(owner("a")))
    );
    assert_eq!(entries.sees(None, "o", observed(ours, Some("ill"))), None);
    assert_eq!(
        entries.state(None, "o"),
        State::Seen(Health {
            wrong: Some("ill".into()),
            rolls: None
        })
    );
    assert_eq!(entries.state(Some("n"), "o"), State::Missing, "another namespace");
}

#[test]
fn an_object_that_goes_is_noticed_also_between_two_listings() {
    let (mut entries, ours) = (listed(), marks("1", "f:data", "b"));
    for name in ["deleted", "missed", "let-go", "not-kept"] {
        entries.sees(None, name, observed(ours, None));
    }
    for name in ["deleted", "missed", "let-go"] {
        entries.applied(None, name, &owner("a"), (ours, 0), false);
    }
    entries.forget(None, "let-go", &owner("a"));
    entries.forget(None, "missed", &owner("somebody else"));
    assert_eq!(entries.misses(None, "deleted"), Some(Event::Drifted(owner("a"))));
    assert_eq!(
        entries.misses(None, "not-kept"),
        Some(Event::Drifted(owner("a"))),
        "its deletion may be awaited"
    );
    assert_eq!(entries.misses(None, "never-seen"), None);
    entries.list_begins();
    entries.sees(None, "deleted", observed(ours, None));
    assert_eq!(
        entries.list_ends(),
        [Event::Drifted(owner("a"))],
        "the missed one alone"
    );
    assert_eq!(entries.state(None, "missed"), State::Missing);
    assert_eq!(entries.objects.len(), 2, "nothing is remembered of the others");
}

#[test]
fn before_the_first_listing_nothing_is_known() {
    let mut entries = Entries::default();
    assert_eq!(entries.state(None, "o"), State::Pending);
    assert!(entries.list_fails("forbidden".to_owned()));
    assert!(!entries.list_fails("forbidden".to_owned()), "no news");
    assert_eq!(entries.state(None, "o"), State::Unknown("forbidden".to_owned()));
    entries.list_begins();
    assert_eq!(
        entries.sees(None, "o", observed(marks("1", "f:data", "b"), None)),
        None,
        "told when all are listed"
    );
    entries.list_ends();
    assert_eq!(entries.state(None, "x"), State::Missing);
}

/// A user who labels many objects in a shoot makes the process remember none of these, and hides no change of
/// an applied object.
#[test]
fn objects_of_strangers_beyond_the_limit_are_not_tracked() {
    for judged in [false, true] {
        let mut entries = Entries::new(judged);
        let ours = marks("1", "f:data", "b");
        entries.applied(None, "before", &owner("a"), (ours, 0), false);
        entries.list_begins();
        for number in 0..3 * MOST_STRANGERS {
            entries.sees(Some("n"), &format!("s{number}"), observed(ours, None));
        }
        entries.sees(None, "before", observed(ours, None));
        // An object that was seen beyond the limit, and is applied only now.
        entries.sees(None, "after", observed(ours, None));
        entries.list_ends();
        assert!(entries.has_untracked());
        entries.applied(None, "after", &owner("a"), (ours, 0), false);
        assert_eq!(entries.objects.len(), MOST_STRANGERS + 2);
        assert_eq!(entries.state(None, "before"), State::Seen(Health::default()));
        match entries.state(None, "after") {
            State::Unknown(why) => assert!(judged && why.contains("take it from them"), "{why}"),
            other => assert_eq!((judged, other), (false, State::Seen(Health::default()))),
        }
        let less = observed(marks("1", "f:less", "b"), None);
        for name in ["before", "after"] {
            assert_eq!(
                entries.sees(None, name, less.clone()),
                Some(Event::Drifted(owner("a"))),
                "{name}"
            );
        }
        // When the strangers are gone, the state is as before, without a trace of the strangers.
        for number in 0..3 * MOST_STRANGERS {
            entries.misses(Some("n"), &format!("s{number}"));
        }
        entries.forget(None, "before", &owner("a"));
        entries.list_begins();
        entries.sees(None, "after", observed(ours, None));
        entries.list_ends();
        assert!(!entries.has_untracked());
        assert_eq!(entries.objects.len(), 1);
    }
}
