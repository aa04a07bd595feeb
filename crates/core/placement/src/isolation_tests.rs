#![allow(clippy::unwrap_used)]

use api::gardencore::{ControllerRegistration, Shoot};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;
use serde_json::{Value, json};

use super::{
    Isolation, asked_zone, asks_to_close_now, has_deadline, is_close_now_over, is_due, needs_provider,
    only_in, planned_zone,
};
use crate::Operation;

/// With two zones, the annotation and what is recorded of zone `z`: its phase and status, `+` behind it if
/// its name is known.
fn shoot(asked: Option<&str>, recorded: Option<(&str, &str)>) -> Shoot {
    let mut shoot = json!({
        "metadata": {"name": "demo", "annotations": {}},
        "spec": {"region": "r", "provider": {"type": "metal", "workers": [
            {"name": "a", "machine": {"type": "m"}, "minimum": 1, "maximum": 1, "zones": ["one"]},
            {"name": "b", "machine": {"type": "m"}, "minimum": 1, "maximum": 1, "zones": ["one", "two"]},
        ]}},
        "status": {},
    });
    if let Some(zone) = asked {
        shoot["metadata"]["annotations"]["shoot.gardener.cloud/isolated-zone"] = json!(zone);
    }
    if let Some((phase, status)) = recorded {
        let name = status.strip_suffix('+').map(|_| "one");
        shoot["status"]["zoneIsolation"] = json!({
            "isolatedZoneID": "z", "isolatedZoneCode": name, "phase": phase, "status": status.trim_end_matches('+'),
            "lastUpdateTime": "2026-01-01T00:00:00Z",
        });
    }
    serde_json::from_value(shoot).unwrap()
}

fn registration(kinds: &[&str]) -> ControllerRegistration {
    let resources: Vec<Value> = kinds
        .iter()
        .map(|kind| json!({"kind": kind, "type": "metal"}))
        .collect();
    serde_json::from_value(json!({"metadata": {"name": "p"}, "spec": {"resources": resources}})).unwrap()
}

fn plan_zones(shoot: &Shoot, operation: Operation) -> Isolation {
    Isolation::for_shoot(
        shoot,
        operation,
        &[registration(&["Infrastructure", "SubnetIsolation"])],
    )
}

#[rstest]
#[case(None, None, false)]
#[case(Some(""), None, false)]
#[case(None, Some(("Failback", "Done")), false)]
#[case(Some("z"), None, true)]
#[case(Some("z"), Some(("Failback", "Done")), true)]
#[case(Some("z"), Some(("Failover", "Pending")), true)]
#[case(Some("z"), Some(("Failover", "InProgress")), true)]
#[case(Some("z"), Some(("Failover", "Aborting")), true)]
#[case(Some("z"), Some(("Failback", "InProgress")), true)]
#[case(None, Some(("Failover", "Done")), true)]
#[case(None, Some(("Failover", "Failed")), true)]
#[case(None, Some(("Failback", "Pending")), true)]
// Another zone comes after the first, which is opened before.
#[case(Some("y"), Some(("Failover", "Done")), true)]
// What has failed is not tried for ever, and what is done is done.
#[case(Some("z"), Some(("Failover", "Done")), false)]
#[case(Some("z"), Some(("Failover", "Failed")), false)]
#[case(None, Some(("Failback", "Failed")), false)]
fn the_annotation_alone_starts_it(
    #[case] asked: Option<&str>,
    #[case] recorded: Option<(&str, &str)>,
    #[case] due: bool,
) {
    assert_eq!(is_due(&shoot(asked, recorded)), due);
}

#[test]
fn a_reconciliation_does_what_is_asked_for() {
    for recorded in [
        None,
        Some(("Failover", "InProgress")),
        Some(("Failback", "InProgress")),
    ] {
        let cut_off = plan_zones(&shoot(Some("z"), recorded), Operation::Reconcile);
        assert_eq!(cut_off, Isolation::CutOff("z".into()));
        assert_eq!(
            plan_zones(&shoot(None, recorded), Operation::Reconcile),
            Isolation::Nothing
        );
        for operation in [Operation::Migrate, Operation::Delete, Operation::ForceDelete] {
            assert_eq!(
                plan_zones(&shoot(Some("z"), recorded), operation),
                Isolation::Nothing
            );
        }
    }
    assert_eq!(asked_zone(&shoot(Some(""), None)), None);
}

/// The record of the source alone closes no zone. The begin of a restore records the failover of a zone that
/// the user takes back as a failback.
#[rstest]
#[case(None, None)]
#[case(Some(("Failback", "Done")), None)]
#[case(Some(("Failover", "Done")), Some(true))]
#[case(Some(("Failover", "InProgress")), Some(true))]
#[case(Some(("Failover", "Failed+")), Some(true))]
#[case(Some(("Failover", "Failed")), Some(false))]
#[case(Some(("Failover", "Pending")), Some(false))]
#[case(Some(("Failover", "Aborting")), Some(false))]
#[case(Some(("Failback", "InProgress")), Some(false))]
#[case(Some(("Failback", "Pending")), Some(false))]
fn a_restoration_brings_back_what_was_there(
    #[case] recorded: Option<(&str, &str)>,
    #[case] left: Option<bool>,
) {
    let is_ending = recorded.is_some_and(|(phase, _)| phase == "Failback");
    for asked in [None, Some("z"), Some("y")] {
        let counts = is_ending || asked == Some("z");
        let carried = left.filter(|_| counts).map(|is_left| Isolation::Carried {
            zone: "z".into(),
            is_left,
        });
        let planned = plan_zones(&shoot(asked, recorded), Operation::Restore);
        assert_eq!(planned, carried.unwrap_or_default(), "{asked:?}");
    }
}

fn reason(shoot: &Shoot, kinds: &[&str]) -> Option<&'static str> {
    match Isolation::for_shoot(shoot, Operation::Reconcile, &[registration(kinds)]) {
        Isolation::Refused(refusal) => Some(refusal.reason),
        _ => None,
    }
}

#[test]
fn what_cannot_be_is_refused_before_it_begins() {
    let (both, one) = (["Infrastructure", "SubnetIsolation"], ["Infrastructure"]);
    let wide = shoot(Some("z"), None);
    assert_eq!(reason(&wide, &both), None);
    assert_eq!(reason(&wide, &one), Some("NotSupportedByProvider"));
    assert_eq!(reason(&wide, &[]), None, "installed by other means");
    let mut narrow = wide.clone();
    narrow.spec.provider.workers.truncate(1);
    assert_eq!(reason(&narrow, &both), Some("NoOtherZone"));
    narrow.spec.provider.workers.clear();
    assert_eq!(reason(&narrow, &both), Some("NoWorkers"));
    let mut double = wide.clone();
    double.spec.provider.workers[1].zones.push("one".into());
    assert_eq!(reason(&double, &both), Some("ZoneNamedTwice"));
    // What has begun is kept up.
    for recorded in [("Failover", "Done"), ("Failover", "InProgress+")] {
        assert_eq!(reason(&shoot(Some("z"), Some(recorded)), &one), None);
    }
    let mut admitted = shoot(Some("z"), Some(("Failover", "InProgress")));
    assert!(!has_deadline(&admitted, "z"));
    let isolation = admitted
        .status
        .as_mut()
        .and_then(|status| status.zone_isolation.as_mut());
    isolation.unwrap().close_deadline_time = Some(Time("2026-01-01T00:15:00Z".parse().unwrap()));
    assert_eq!(
        reason(&admitted, &one),
        None,
        "a restart does not judge the failover again"
    );
    assert!(has_deadline(&admitted, "z") && !has_deadline(&admitted, "y"));
    for recorded in [("Failover", "Failed"), ("Failback", "InProgress+")] {
        let refused = reason(&shoot(Some("z"), Some(recorded)), &one);
        assert_eq!(refused, Some("NotSupportedByProvider"));
    }
}

#[test]
fn a_seed_needs_the_provider_while_there_is_something_of_it() {
    let [able, unable] = [&["SubnetIsolation"][..], &["Infrastructure"]].map(registration);
    let needs = |shoot: &Shoot, by: &ControllerRegistration| needs_provider(shoot, [by]);
    assert!(needs(&shoot(Some("z"), None), &able));
    assert!(
        !needs(&shoot(Some("z"), None), &unable),
        "it is refused, and stands in no move's way"
    );
    assert!(!needs(&shoot(None, None), &able));
    assert!(needs(&shoot(None, Some(("Failover", "Done"))), &able));
    assert!(
        !needs(&shoot(None, Some(("Failover", "Done"))), &unable),
        "a report of the host refuses no takeover"
    );
    assert!(!needs(&shoot(None, Some(("Failover", "Failed"))), &able));
    assert!(!needs(&shoot(None, Some(("Failback", "Done"))), &able));
}

#[test]
fn pools_of_one_zone_and_the_zone_that_is_asked_about() {
    let shoot = shoot(None, None);
    assert_eq!(only_in(&shoot, "one").collect::<Vec<_>>(), ["a"]);
    assert_eq!(only_in(&shoot, "two").count(), 0);
    assert_eq!(only_in(&shoot, "").count(), 0);
    assert_eq!(planned_zone(&shoot), None);
    let mut asking = shoot;
    for (value, expected) in [("z", Some("z")), ("", None)] {
        let annotations = asking.metadata.annotations.get_or_insert_default();
        annotations.insert("shoot.gardener.cloud/isolated-zone-dry-run".into(), value.into());
        assert_eq!(planned_zone(&asking), expected);
    }
}

/// RZ-32: a request to close the network now waits for the admission, and does not outlive the failover.
#[rstest]
#[case(Some("z"), None, false)]
#[case(Some("z"), Some(("Failover", "Failed")), false)]
#[case(Some("z"), Some(("Failover", "InProgress")), false)]
#[case(Some("z"), Some(("Failback", "InProgress")), false)]
#[case(Some("z"), Some(("Failover", "Done")), true)]
#[case(None, Some(("Failover", "InProgress")), true)]
#[case(None, None, true)]
fn a_request_to_close_now_belongs_to_one_failover(
    #[case] asked: Option<&str>,
    #[case] recorded: Option<(&str, &str)>,
    #[case] is_over: bool,
) {
    let mut shoot = shoot(asked, recorded);
    assert!(!asks_to_close_now(&shoot));
    let annotations = shoot.metadata.annotations.get_or_insert_default();
    annotations.insert(
        "shoot.gardener.cloud/isolated-zone-close-now".into(),
        "true".into(),
    );
    assert!(asks_to_close_now(&shoot));
    assert_eq!(is_close_now_over(&shoot), is_over);
}
