#![allow(clippy::unwrap_used)]

use api::gardencore::Shoot;
use rstest::rstest;
use serde_json::json;

use super::{ReportedZone, SeenNode, ZoneFacts, ZoneNode, judge, names, zone_name};

const LABEL: &str = "topology.k8s.aws/zone-id";

/// `id/name`, a dash where it says nothing, `!` behind it where it is not Ready.
fn node(text: &str) -> ZoneNode {
    let (id, name) = text.trim_end_matches('!').split_once('/').unwrap();
    let said = |text: &str| (text != "-").then(|| text.to_owned());
    ZoneNode {
        zone_id: said(id),
        zone_name: said(name),
        is_ready: !text.ends_with('!'),
    }
}

fn nodes(text: &str) -> Vec<ZoneNode> {
    text.split_whitespace().map(node).collect()
}

#[rstest]
// Nodes say the ID of their zone.
#[case("z/one y/two", None, None, 0)]
#[case("z/one y/two!", None, Some("NoNodeElsewhere"), 0)]
#[case("z/one! y/two!", None, Some("NoNodeElsewhere"), 0)]
#[case("z/one", None, Some("NoNodeElsewhere"), 0)]
#[case("", None, Some("NoNodeElsewhere"), 0)]
// They say its name alone, which is known.
#[case("-/one -/two", Some("one"), None, 0)]
#[case("-/one -/two!", Some("one"), Some("NoNodeElsewhere"), 0)]
// It is not known: of two zones one is another one.
#[case("-/one -/two", None, None, 0)]
#[case("-/one -/one -/two!", None, None, 1)]
#[case("-/-", None, None, 1)]
#[case("-/- -/one", None, None, 1)]
#[case("-/- -/one -/two", None, None, 0)]
#[case("z/one -/-", None, None, 1)]
fn somebody_must_be_there_to_take_over(
    #[case] there: &str,
    #[case] name: Option<&str>,
    #[case] reason: Option<&str>,
    #[case] warnings: usize,
) {
    let facts = ZoneFacts {
        nodes: Some(Ok(nodes(there))),
        ..ZoneFacts::default()
    };
    let verdict = judge("z", name, &facts);
    assert_eq!(verdict.refusal.map(|refusal| refusal.reason), reason, "{there}");
    assert_eq!(verdict.warnings.len(), warnings, "{there}");
}

#[test]
fn a_shoot_that_sleeps_has_no_nodes_and_one_that_does_not_answer_is_refused() {
    assert_eq!(judge("z", None, &ZoneFacts::default()).refusal, None);
    let silent = ZoneFacts {
        nodes: Some(Err("it does not answer.".into())),
        ..ZoneFacts::default()
    };
    let refusal = judge("z", None, &silent).refusal.unwrap();
    assert_eq!(refusal.reason, "NodesUnknown");
    assert!(
        refusal
            .message
            .contains("it does not answer. The failover begins when"),
        "{}",
        refusal.message
    );
}

#[test]
fn its_control_plane_is_not_cut_off_from_its_machines() {
    let pod = |name: &str, zone: Option<&str>| (name.to_owned(), zone.map(str::to_owned));
    let of = |pods| {
        let facts = ZoneFacts {
            control_plane: pods,
            ..ZoneFacts::default()
        };
        judge("z", None, &facts)
    };
    let elsewhere = of(vec![pod("etcd-main-0", Some("y"))]);
    assert_eq!((elsewhere.refusal, elsewhere.warnings.len()), (None, 0));
    let unknown = of(vec![pod("etcd-main-0", None), pod("kube-apiserver-x", Some("y"))]);
    assert_eq!(unknown.refusal, None);
    assert!(
        unknown.warnings[0].contains("(pods etcd-main-0)"),
        "{:?}",
        unknown.warnings
    );
    let there = of(vec![pod("etcd-main-0", None), pod("kube-apiserver-x", Some("z"))]);
    let refusal = there.refusal.unwrap();
    assert_eq!(refusal.reason, "ControlPlaneInZone");
    assert!(
        refusal
            .message
            .contains("(pods kube-apiserver-x): move the shoot"),
        "{}",
        refusal.message
    );
}

#[test]
fn a_seed_that_hosts_shoots_is_told_first() {
    let facts = ZoneFacts {
        nodes: Some(Ok(Vec::new())),
        hosts_as: Some("big".into()),
        ..ZoneFacts::default()
    };
    let refusal = judge("z", None, &facts).refusal.unwrap();
    assert_eq!(refusal.reason, "IsSeed");
    assert!(refusal.message.contains("Seed big"));
}

#[rstest]
#[case("z", "z/one -/two", Some("one"))]
#[case("z", "y/two", None)]
// A provider that calls its zones by their IDs.
#[case("two", "-/two", Some("two"))]
// It was told the last time.
#[case("old", "old/other", Some("known"))]
fn what_a_zone_is_called_is_said_by_whoever_knows(
    #[case] zone: &str,
    #[case] there: &str,
    #[case] expected: Option<&str>,
) {
    let shoot: Shoot = serde_json::from_value(json!({
        "metadata": {"name": "demo"},
        "spec": {"region": "r", "provider": {"type": "metal", "workers": [
            {"name": "a", "machine": {"type": "m"}, "minimum": 1, "maximum": 1, "zones": ["one", "two"]}]}},
        "status": {"zoneIsolation": {"isolatedZoneID": "old", "isolatedZoneCode": "known", "phase": "Failback", "status": "Done",
            "lastUpdateTime": "2026-01-01T00:00:00Z"}},
    }))
    .unwrap();
    assert_eq!(zone_name(&shoot, zone, &[], &nodes(there)), expected);
    let reported = reported(&[("one", "z"), ("known", "old"), ("two", "two")]);
    let wrong = nodes("z/wrong");
    let by_infrastructure = zone_name(&shoot, zone, &reported, &wrong);
    let names = [("z", "one"), ("old", "known"), ("two", "two")];
    let name = names.iter().find(|(id, _)| *id == zone).map(|(_, name)| *name);
    assert_eq!(by_infrastructure, name);
}

/// As `status.providerStatus` has them. What is not a zone is left out.
fn reported(zones: &[(&str, &str)]) -> Vec<ReportedZone> {
    let mut all: Vec<_> = zones
        .iter()
        .map(|(name, id)| json!({"name": name, "id": id, "more": 1}))
        .collect();
    all.push(json!({"name": "without-id"}));
    ReportedZone::all(Some(
        &json!({"kind": "InfrastructureStatus", "zones": all}).into(),
    ))
}

/// Nodes without a label that has the ID of their zone are told apart by their zone's name.
#[test]
fn zones_are_known_by_what_the_infrastructure_reports() {
    let of = |zones: &[(&str, &str)], there: &str| {
        let facts = ZoneFacts {
            zones: reported(zones),
            nodes: Some(Ok(nodes(there))),
            ..ZoneFacts::default()
        };
        let shoot: Shoot = serde_json::from_value(json!({
            "metadata": {"name": "demo"}, "spec": {"region": "r", "provider": {"type": "metal", "workers": []}},
        }))
        .unwrap();
        let verdict = judge("z", facts.zone_name(&shoot, "z"), &facts);
        let refusal = verdict.refusal.map(|refusal| (refusal.reason, refusal.message));
        (refusal, verdict.warnings.len())
    };
    let zones = [("one", "z"), ("two", "y")];
    assert_eq!(of(&zones, "-/one -/two"), (None, 0));
    let (refusal, warnings) = of(&zones, "-/one -/one");
    assert_eq!((refusal.unwrap().0, warnings), ("NoNodeElsewhere", 0));
    let (refusal, _) = of(&zones[1..], "z/one y/two");
    let (reason, message) = refusal.unwrap();
    assert_eq!(reason, "ZoneUnknown");
    assert!(message.contains("reports the zones y (two)"), "{message}");
    // A provider that reports no zones.
    assert_eq!(of(&[], "-/one -/one"), (None, 1));
    assert_eq!(ReportedZone::all(None), []);
}

#[test]
fn a_node_is_known_by_its_labels() {
    let node: SeenNode = serde_json::from_value(json!({
        "metadata": {"name": "n", "labels": {LABEL: "z", "topology.kubernetes.io/zone": "one"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }))
    .unwrap();
    let of = |labels: &[&str]| {
        let labels: Vec<_> = labels.iter().map(|label| (*label).to_owned()).collect();
        ZoneNode::from_node(&node, &labels)
    };
    assert_eq!(of(&["example.org/zone-id", LABEL]), self::node("z/one"));
    assert_eq!(of(&[]), self::node("-/one"));
    assert!(!ZoneNode::from_node(&SeenNode::default(), &[]).is_ready);
}

#[test]
fn many_names_are_not_all_told() {
    assert_eq!(names(&["a", "b"]), "a, b");
    assert_eq!(
        names(&["a", "b", "c", "d", "e", "f", "g"]),
        "a, b, c, d, e and 2 more"
    );
}
