//! The message of a planned move says what would keep a takeover on the way from beginning.

#![allow(clippy::unwrap_used)]

use api::{
    gardencore::ShootStatus,
    meta::{Condition, ConditionStatus},
};
use serde_json::json;

use super::world::{epoch, judged};

/// A planned move needs no fence, and its message says that a takeover on the way would be refused.
#[test]
fn a_move_between_seeds_with_other_servers_begins_and_says_that_a_takeover_would_not() {
    let same = moved_between(&["192.0.2.1:53"], &["192.0.2.1:53"], |_| ());
    assert!(!same.contains("Without the help"), "{same}");
    let differs = moved_between(&["192.0.2.1:53"], &["192.0.2.2:53"], |_| ());
    for part in [
        "would not be taken over",
        "asks 192.0.2.1:53",
        "asks 192.0.2.2:53",
    ] {
        assert!(differs.contains(part), "{differs}");
    }
}

#[test]
fn a_move_says_which_report_of_the_source_would_keep_a_takeover_from_beginning() {
    type Change = fn(&mut ShootStatus);
    let rows: [(Change, &str); 5] = [
        (|status| status.owner_checks[0].terms = None, "has no terms"),
        (
            |status| status.owner_checks[0].terms = Some("before".to_owned()),
            "has other terms",
        ),
        (
            |status| status.conditions.clear(),
            "has never reported that all processes",
        ),
        (
            |status| status.owner_checks[0].servers_named = None,
            "has not reported which DNS servers",
        ),
        (
            |status| status.owner_checks[0].host_clock = Some("None".to_owned()),
            "silence alone begins no takeover: the clock of seed a may stop",
        ),
    ];
    for (change, part) in rows {
        let message = moved_between(&["192.0.2.1:53"], &["192.0.2.1:53"], change);
        assert!(message.contains(part), "{part}: {message}");
    }
}

/// The message of a move between seeds with owner checks, where the source has reported all of its checks.
/// `change` edits the status.
fn moved_between(source: &[&str], destination: &[&str], change: fn(&mut ShootStatus)) -> String {
    let checks = |authorities: &[&str]| {
        let settings = json!({"ownerChecks": {"enabled": true, "authorities": authorities}});
        serde_json::from_value(settings).unwrap()
    };
    let verdict = judged(|world| {
        let from = world.source.as_mut().unwrap();
        from.spec.settings = Some(checks(source));
        world.destination.as_mut().unwrap().spec.settings = Some(checks(destination));
        let status = world.shoot.status.as_mut().unwrap();
        let report = json!({"seedName": "a", "epoch": status.epoch(), "servers": source, "serversNamed": true, "hostClock": "Rtc",
            "terms": placement::owner_terms::hash(from, status.epoch())});
        status.owner_checks = vec![serde_json::from_value(report).unwrap()];
        let complete = ConditionStatus::True;
        status.conditions = vec![Condition::new(
            "OwnerChecksComplete",
            complete,
            "TermsApplied",
            "All is well.",
            epoch(),
        )];
        change(status);
    });
    let verdict = verdict.unwrap();
    assert!(verdict.ready, "{verdict:?}");
    verdict.message
}
