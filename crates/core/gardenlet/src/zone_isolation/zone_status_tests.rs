#![allow(clippy::unwrap_used)]

use api::{gardencore::Shoot, meta::LastError};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use placement::{Operation, isolation::IsolationRefusal};
use rstest::rstest;
use serde_json::{Value, json};

use super::{
    Retry, aborting, admitted, begun, delayed, ended, ended_without_others, failed, named, progress, refused,
    spent,
};

use crate::shoot::operation::status::with_content;

const THEN: &str = "2026-01-01T00:00:00Z";
const NOW: &str = "2026-01-01T12:00:00Z";

pub(super) fn now() -> Time {
    Time(NOW.parse::<Timestamp>().unwrap())
}

/// A Shoot whose user asks for this zone, with what is recorded of zone `z`.
pub(super) fn shoot(asked: &str, recorded: Option<(&str, &str)>) -> Shoot {
    let other = json!({
        "type": "EveryNodeReady", "status": "True", "reason": "x", "message": "", "lastTransitionTime": THEN, "lastUpdateTime": THEN,
    });
    let mut shoot = json!({
        "metadata": {"name": "demo", "annotations": {"shoot.gardener.cloud/isolated-zone": asked}},
        "spec": {"region": "r", "provider": {"type": "metal"}},
        "status": {"conditions": [other]},
    });
    if let Some((phase, status)) = recorded {
        shoot["status"]["zoneIsolation"] = json!({
            "isolatedZoneID": "z", "isolatedZoneCode": "one", "phase": phase, "status": status, "lastUpdateTime": THEN,
        });
    }
    serde_json::from_value(shoot).unwrap()
}

/// Zone, phase and status.
pub(super) fn read_record(patch: Option<&Value>) -> Option<String> {
    let isolation = &patch?["zoneIsolation"];
    let word = |field: &str| isolation[field].as_str().unwrap().to_owned();
    Some([word("isolatedZoneID"), word("phase"), word("status")].join(" "))
}

/// Reason and message of the condition, behind those that were there.
pub(super) fn condition(patch: &Value) -> (String, String) {
    let all = patch["conditions"].as_array().unwrap();
    assert_eq!(all[0]["type"], "EveryNodeReady", "another's condition is kept");
    assert_eq!((all.len(), &all[1]["type"]), (2, &json!("ZoneIsolation")));
    let word = |field: &str| all[1][field].as_str().unwrap().to_owned();
    (word("reason"), word("message"))
}

pub(super) fn after(mut shoot: Shoot, patch: &Value) -> Shoot {
    let mut status = serde_json::to_value(&shoot.status).unwrap();
    json_patch::merge(&mut status, patch);
    shoot.status = serde_json::from_value(status).unwrap();
    shoot
}

#[rstest]
#[case("", None, None)]
#[case("", Some(("Failback", "Done")), None)]
#[case("z", None, Some("z Failover InProgress"))]
#[case("z", Some(("Failback", "Done")), Some("z Failover InProgress"))]
#[case("z", Some(("Failover", "Pending")), Some("z Failover InProgress"))]
#[case("z", Some(("Failover", "Failed")), Some("z Failover InProgress"))]
#[case("z", Some(("Failover", "Done")), None)]
// Cancelled, and cancelled again.
#[case("", Some(("Failover", "InProgress")), Some("z Failover Aborting"))]
#[case("", Some(("Failover", "Pending")), Some("z Failover Aborting"))]
#[case("z", Some(("Failover", "Aborting")), Some("z Failover InProgress"))]
#[case("z", Some(("Failback", "Aborting")), Some("z Failover InProgress"))]
#[case("", Some(("Failback", "Aborting")), Some("z Failback InProgress"))]
// Taken back.
#[case("", Some(("Failover", "Done")), Some("z Failback InProgress"))]
#[case("", Some(("Failover", "Failed")), Some("z Failback InProgress"))]
#[case("", Some(("Failback", "Failed")), Some("z Failback InProgress"))]
#[case("", Some(("Failback", "Pending")), Some("z Failback InProgress"))]
// Another zone, past admission.
#[case("y", Some(("Failover", "Done")), Some("y Failover InProgress"))]
fn a_reconciliation_begins(
    #[case] asked: &str,
    #[case] recorded: Option<(&str, &str)>,
    #[case] expected: Option<&str>,
) {
    let shoot = shoot(asked, recorded);
    let patch = begun(&shoot, Operation::Reconcile, false, &now());
    assert_eq!(read_record(patch.as_ref()).as_deref(), expected);
    for operation in [Operation::Delete, Operation::ForceDelete] {
        assert_eq!(begun(&shoot, operation, false, &now()), None);
    }
    if let Some(patch) = patch {
        assert_eq!(patch["zoneIsolation"]["lastUpdateTime"], NOW);
        let known = asked != "y" && recorded.is_some_and(|recorded| recorded != ("Failback", "Done"));
        let name = if known { json!("one") } else { Value::Null };
        assert_eq!(patch["zoneIsolation"]["isolatedZoneCode"], name);
    }
}

/// Or it would be on its way and failed in turns.
#[test]
fn what_has_failed_stays_so_until_it_is_asked_for_again() {
    for (asked, phase) in [("z", "Failover"), ("", "Failback")] {
        let shoot = shoot(asked, Some((phase, "Failed")));
        assert_eq!(begun(&shoot, Operation::Reconcile, true, &now()), None);
        assert!(begun(&shoot, Operation::Reconcile, false, &now()).is_some());
    }
}

/// And the restoration brings back what was there.
#[rstest]
#[case("", None, None)]
#[case("", Some(("Failback", "Done")), None)]
#[case("z", None, Some("z Failover Pending"))]
#[case("z", Some(("Failback", "Done")), Some("z Failover Pending"))]
#[case("z", Some(("Failback", "InProgress")), Some("z Failover Pending"))]
#[case("z", Some(("Failback", "Pending")), Some("z Failover InProgress"))]
#[case("z", Some(("Failover", "Done")), None)]
#[case("y", Some(("Failover", "Done")), None)]
#[case("", Some(("Failover", "Done")), Some("z Failback Pending"))]
#[case("", Some(("Failover", "InProgress")), Some("z Failback Pending"))]
#[case("", Some(("Failback", "InProgress")), None)]
fn what_is_asked_for_in_a_move_waits(
    #[case] asked: &str,
    #[case] recorded: Option<(&str, &str)>,
    #[case] expected: Option<&str>,
) {
    for operation in [Operation::Migrate, Operation::Restore] {
        let patch = begun(&shoot(asked, recorded), operation, false, &now());
        assert_eq!(read_record(patch.as_ref()).as_deref(), expected);
    }
}

#[test]
fn a_failover_and_a_failback_are_told_from_begin_to_end() {
    let first = shoot("z", None);
    let patch = begun(&first, Operation::Reconcile, false, &now()).unwrap();
    assert_eq!(condition(&patch).0, "FailoverInProgress");
    let away = after(first, &patch);
    assert_eq!(named(&away, "y", "two", &now()), None, "of another zone");
    let patch = named(&away, "z", "one", &now()).unwrap();
    assert_eq!(patch["zoneIsolation"]["isolatedZoneCode"], "one");
    let away = after(away, &patch);
    assert_eq!(named(&away, "z", "one", &now()), None, "told already");
    let patch = ended(&away, true, &now()).unwrap();
    assert_eq!(read_record(Some(&patch)).unwrap(), "z Failover Done");
    let sentence = "Zone z (one) is cut off: no machines are in it, and its network is closed.";
    assert_eq!(condition(&patch), ("ZoneIsolated".into(), sentence.into()));
    let mut away = after(away, &patch);
    assert_eq!(ended(&away, true, &now()), None, "told already");
    assert_eq!(aborting(&away, &now()), None);
    away.metadata.annotations = None;
    let patch = begun(&away, Operation::Reconcile, false, &now()).unwrap();
    assert_eq!(condition(&patch).0, "FailbackInProgress");
    let patch = ended(&after(away, &patch), false, &now()).unwrap();
    assert_eq!(read_record(Some(&patch)).unwrap(), "z Failback Done");
    assert_eq!(condition(&patch).0, "ZoneIsBack");
}

#[test]
fn who_changes_his_mind_ends_what_is_under_way() {
    for (recorded, expected) in [
        (("Failover", "InProgress"), Some("z Failover Aborting")),
        (("Failback", "InProgress"), Some("z Failback Aborting")),
        (("Failover", "Aborting"), None),
        (("Failback", "Done"), None),
    ] {
        let patch = aborting(&shoot("", Some(recorded)), &now());
        assert_eq!(read_record(patch.as_ref()).as_deref(), expected);
    }
    let undone = ended(&shoot("", Some(("Failover", "Aborting"))), false, &now());
    assert_eq!(read_record(undone.as_ref()).unwrap(), "z Failback Done");
}

#[test]
fn errors_are_told_and_only_the_last_ones_are_a_failure() {
    let errors: [LastError; 1] =
        [serde_json::from_value(json!({"description": "no zone has the ID z"})).unwrap()];
    let failed =
        |recorded, operation, retry| failed(&shoot("z", Some(recorded)), operation, &errors, retry, &now());
    let (under_way, reconcile) = (("Failover", "InProgress"), Operation::Reconcile);
    let patch = failed(under_way, reconcile, Retry::ByItself).unwrap();
    assert_eq!(read_record(Some(&patch)).unwrap(), "z Failover InProgress");
    assert_eq!(
        patch["zoneIsolation"]["lastUpdateTime"], THEN,
        "nothing of it has changed"
    );
    let (reason, message) = condition(&patch);
    assert_eq!(reason, "FailoverInProgress");
    assert!(
        message.ends_with("tried again after: no zone has the ID z"),
        "{message}"
    );
    // The provider has named the zone: the failover goes on until the zone is closed.
    assert_eq!(failed(under_way, reconcile, Retry::Never), Some(patch));
    for recorded in [("Failover", "Aborting"), ("Failback", "InProgress")] {
        let patch = failed(recorded, reconcile, Retry::ByItself);
        assert!(
            read_record(patch.as_ref()).unwrap().ends_with(recorded.1),
            "{recorded:?}"
        );
        let patch = failed(recorded, reconcile, Retry::Never);
        assert_eq!(read_record(patch.as_ref()).unwrap(), "z Failback Failed");
    }
    let patch = unnamed_failed(&errors);
    assert_eq!(read_record(Some(&patch)).unwrap(), "z Failover Failed");
    let sentence = "The failover of zone z has failed: no zone has the ID z";
    assert_eq!(condition(&patch), ("FailoverFailed".into(), sentence.into()));
    // Nothing of it was under way.
    for recorded in [
        ("Failover", "Done"),
        ("Failover", "Failed"),
        ("Failover", "Pending"),
    ] {
        assert_eq!(failed(recorded, reconcile, Retry::Never), None);
    }
    assert_eq!(failed(under_way, Operation::Migrate, Retry::Never), None);
}

/// A failover before the provider has named the zone.
pub(super) fn unnamed() -> Shoot {
    let mut unnamed = shoot("z", Some(("Failover", "InProgress")));
    let recorded = unnamed.status.as_mut().unwrap().zone_isolation.as_mut().unwrap();
    recorded.isolated_zone_code = None;
    unnamed
}

/// Before the admission.
fn unnamed_failed(errors: &[LastError]) -> Value {
    let unknown = unnamed();
    let patch = failed(&unknown, Operation::Reconcile, errors, Retry::Never, &now()).unwrap();
    // The provider knows the zone later on: what has failed goes on.
    let failed = after(unknown, &patch);
    let named = named(&failed, "z", "one", &now());
    assert_eq!(read_record(named.as_ref()).unwrap(), "z Failover InProgress");
    patch
}

pub(super) fn deadline(patch: &Value) -> Option<&str> {
    patch["zoneIsolation"]["closeDeadlineTime"].as_str()
}

/// RZ-32: one budget, which a restart, a move or an error does not begin anew.
#[test]
fn a_failover_has_one_budget() {
    let minutes = |minutes: u64| std::time::Duration::from_secs(minutes * 60);
    let at = |time: &str| Time(format!("2026-01-01T{time}Z").parse().unwrap());
    let first = shoot("z", None);
    let patch = begun(&first, Operation::Reconcile, false, &now()).unwrap();
    assert_eq!(deadline(&patch), None, "the failover is not admitted yet");
    let away = after(first, &patch);
    let patch = admitted(&away, "z", minutes(15), &now()).unwrap();
    assert_eq!(deadline(&patch), Some("2026-01-01T12:15:00Z"));
    let message = condition(&patch).1;
    assert!(
        message.ends_with("at 2026-01-01T12:15:00Z: 15 minutes of the budget are left."),
        "{message}"
    );
    let away = after(away, &patch);
    assert_eq!(
        admitted(&away, "z", minutes(15), &at("12:05:00")),
        None,
        "it goes on"
    );
    // A deadline that was written by hand.
    let mut hostile = away.clone();
    let recorded = hostile.status.as_mut().unwrap().zone_isolation.as_mut().unwrap();
    recorded.close_deadline_time = Some(Time("2099-01-01T00:00:00Z".parse().unwrap()));
    let patch = admitted(&hostile, "z", minutes(15), &at("12:05:00")).unwrap();
    assert_eq!(
        deadline(&patch),
        Some("2026-01-01T12:20:00Z"),
        "the budget has a bound"
    );
    let patch = progress(&away, "z", "Worker: w", &at("12:05:01")).unwrap();
    let (_, message) = condition(&patch);
    assert!(
        message.ends_with("10 minutes of the budget are left. Now: Worker: w."),
        "{message}"
    );
    assert_eq!(deadline(&patch), Some("2026-01-01T12:15:00Z"));
    let patch = progress(&away, "z", "SubnetIsolation: s", &at("12:15:00")).unwrap();
    let (_, message) = condition(&patch);
    assert!(
        message.contains("The budget was spent at 2026-01-01T12:15:00Z"),
        "{message}"
    );

    let again = begun(&away, Operation::Reconcile, false, &at("12:06:00"));
    assert_eq!(
        deadline(&again.unwrap()),
        Some("2026-01-01T12:15:00Z"),
        "another flow of the same failover"
    );
    assert_eq!(begun(&away, Operation::Migrate, false, &at("12:06:00")), None);
    let patch = spent(&away, "z", &at("12:07:00")).unwrap();
    assert_eq!(deadline(&patch), Some("2026-01-01T12:07:00Z"));
    assert_eq!(spent(&away, "y", &at("12:07:00")), None, "of another zone");
    let away = after(away, &patch);
    assert_eq!(spent(&away, "z", &at("12:08:00")), None, "nothing is left");

    let done = ended(&away, true, &at("12:09:00")).unwrap();
    assert_eq!(
        deadline(&done),
        Some("2026-01-01T12:07:00Z"),
        "it says when it was closed"
    );
    let mut back = after(away, &done);
    assert_eq!(admitted(&back, "z", minutes(15), &at("12:09:00")), None);
    back.metadata.annotations = None;
    let patch = begun(&back, Operation::Reconcile, false, &at("12:09:00")).unwrap();
    assert_eq!(deadline(&patch), None, "the next failover has its own");
}

/// What was refused for a passing reason begins when it has passed, with all of its budget.
#[test]
fn a_refusal_that_has_passed_begins() {
    for (reason, begins) in [("NodesUnknown", true), ("NoOtherZone", false)] {
        let refusal = IsolationRefusal {
            reason,
            message: "No.".into(),
        };
        let first = shoot("z", Some(("Failover", "InProgress")));
        let patch = refused(&first, "z", &refusal, &now()).unwrap();
        let refused = after(first, &patch);
        let patch = admitted(&refused, "z", std::time::Duration::from_secs(900), &now());
        assert_eq!(patch.is_some(), begins, "{reason}");
        if let Some(patch) = patch {
            assert_eq!(read_record(Some(&patch)).unwrap(), "z Failover InProgress");
            assert_eq!(deadline(&patch), Some("2026-01-01T12:15:00Z"));
        }
    }
}

/// The controller of deadlines admits a failover while a former flow still runs: no write of that flow may
/// take the deadline back.
#[test]
fn a_flow_of_before_does_not_end_a_failover_that_was_admitted() {
    let budget = std::time::Duration::from_secs(900);
    for recorded in [
        None,
        Some(("Failback", "InProgress")),
        Some(("Failover", "Aborting")),
    ] {
        let first = shoot("z", recorded);
        assert_eq!(
            admitted(&first, "y", budget, &now()),
            None,
            "the Shoot asks for zone z"
        );
        let patch = admitted(&first, "z", budget, &now()).unwrap();
        assert_eq!(read_record(Some(&patch)).unwrap(), "z Failover InProgress");
        assert_eq!(deadline(&patch), Some("2026-01-01T12:15:00Z"));
        let away = after(first, &patch);
        let refusal = IsolationRefusal {
            reason: "NodesUnknown",
            message: "No.".into(),
        };
        assert_eq!(refused(&away, "z", &refusal, &now()), None, "{recorded:?}");
        assert_eq!(aborting(&away, &now()), None, "{recorded:?}");
        assert_eq!(ended(&away, false, &now()), None, "{recorded:?}");
        let mut cancelled = away;
        cancelled.metadata.annotations = None;
        let patch = aborting(&cancelled, &now());
        assert_eq!(read_record(patch.as_ref()).unwrap(), "z Failover Aborting");
    }
    let done = shoot("z", Some(("Failover", "Done")));
    assert_eq!(admitted(&done, "z", budget, &now()), None);
}

#[test]
fn machines_elsewhere_that_are_not_ready_are_reported_when_the_zone_is_isolated() {
    let away = shoot("z", Some(("Failover", "InProgress")));
    let patch =
        ended_without_others(&away, "MachineDeployment d: of 2 machines 1 is ready.", &now()).unwrap();
    assert_eq!(read_record(Some(&patch)).unwrap(), "z Failover Done");
    let (reason, message) = condition(&patch);
    assert_eq!(reason, "OtherZonesNotReady");
    assert!(
        message.ends_with("is closed. MachineDeployment d: of 2 machines 1 is ready."),
        "{message}"
    );
    let patch = ended(&after(away, &patch), true, &now()).unwrap();
    assert_eq!(condition(&patch).0, "ZoneIsolated", "they are ready");
}

#[test]
fn a_refusal_is_told_by_its_reason() {
    let refusal = IsolationRefusal {
        reason: "NoOtherZone",
        message: "Add another zone.".into(),
    };
    let patch = refused(
        &shoot("z", Some(("Failover", "InProgress"))),
        "z",
        &refusal,
        &now(),
    )
    .unwrap();
    assert_eq!(read_record(Some(&patch)).unwrap(), "z Failover Failed");
    assert_eq!(
        condition(&patch),
        ("NoOtherZone".into(), "Add another zone.".into())
    );
    assert_eq!(patch["conditions"][1]["status"], "False");
    let patch = with_content(json!({"lastErrors": null}), Some(patch));
    assert_eq!(patch["lastErrors"], Value::Null);
    assert_eq!(patch["zoneIsolation"]["status"], "Failed");
}

/// A long wait is under way, and says for what.
#[test]
fn what_is_awaited_is_told_in_the_words_of_whoever_is_at_work() {
    let under_way = shoot("z", Some(("Failover", "InProgress")));
    let words = "Worker: 2 machines leave zone one.";
    let patch = progress(&under_way, "z", words, &now()).unwrap();
    assert_eq!(read_record(Some(&patch)).unwrap(), "z Failover InProgress");
    let (reason, message) = condition(&patch);
    assert_eq!(reason, "FailoverInProgress");
    assert!(
        message.ends_with("closed. Now: Worker: 2 machines leave zone one."),
        "{message}"
    );
    assert_eq!(
        progress(&after(under_way, &patch), "z", words, &now()),
        None,
        "told already"
    );
    let long = progress(
        &shoot("z", Some(("Failover", "InProgress"))),
        "z",
        &"x".repeat(2000),
        &now(),
    );
    assert!(condition(&long.unwrap()).1.len() < 500);
    for recorded in [
        ("Failover", "Aborting"),
        ("Failover", "Done"),
        ("Failback", "Done"),
    ] {
        assert_eq!(
            progress(&shoot("z", Some(recorded)), "z", words, &now()),
            None,
            "{recorded:?}"
        );
    }
    assert_eq!(
        progress(&shoot("z", Some(("Failover", "InProgress"))), "y", words, &now()),
        None
    );
}

#[test]
fn pools_without_another_zone_are_told_while_it_is_away() {
    let mut narrow = serde_json::to_value(shoot("z", Some(("Failover", "InProgress")))).unwrap();
    let pool = |name: &str, zones: &[&str]| json!({"name": name, "machine": {"type": "m"}, "minimum": 1, "maximum": 1, "zones": zones});
    narrow["spec"]["provider"]["workers"] =
        json!([pool("a", &["one"]), pool("b", &["one", "two"]), pool("c", &[])]);
    let narrow: Shoot = serde_json::from_value(narrow).unwrap();
    let sentence = "Pools without another zone have no machines meanwhile: a.";
    let patch = named(&narrow, "z", "one", &now()).unwrap();
    assert!(condition(&patch).1.ends_with(sentence), "{patch}");
    let reported = |cuts_off| condition(&ended(&narrow, cuts_off, &now()).unwrap()).1;
    assert!(reported(true).ends_with(sentence));
    assert!(!reported(false).contains("Pools"));
}

#[test]
fn whoever_waits_is_told_until_when() {
    let until = "2026-01-01T12:10:00.5Z".parse().unwrap();
    let patch = delayed(&shoot("", Some(("Failover", "Aborting"))), until, &now()).unwrap();
    assert_eq!(read_record(Some(&patch)).unwrap(), "z Failover Aborting");
    let (reason, message) = condition(&patch);
    assert_eq!(reason, "ChangedTooOften");
    assert!(message.ends_with("begins at 2026-01-01T12:10:00Z."), "{message}");
    assert_eq!(delayed(&shoot("", None), until, &now()), None);
}
