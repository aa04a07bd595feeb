#![allow(clippy::unwrap_used)]
use rstest::rstest;
use serde_json::json;

use super::*;

/// `name:phase`, and then any of `d` (in deletion), `n` (has a Node), `1` to `5` (priority), `h` and an hour
/// (time of creation).
fn machine(text: &str) -> Machine {
    let mut parts = text.split(':');
    let (name, phase) = (parts.next().unwrap(), parts.next().unwrap());
    let mut body = json!({
        "apiVersion": "machine.sapcloud.io/v1alpha1", "kind": "Machine", "spec": {},
        "metadata": {"name": name, "creationTimestamp": "2026-01-01T00:00:00Z", "labels": {}, "annotations": {}},
        "status": {"currentStatus": {"phase": phase}},
    });
    for part in parts {
        match part {
            "d" => body["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z"),
            "n" => body["metadata"]["labels"]["node"] = json!(name),
            hour if hour.starts_with('h') => {
                body["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T{}:00:00Z", &hour[1..]));
            }
            priority => body["metadata"]["annotations"][PRIORITY] = json!(priority),
        }
    }
    serde_json::from_value(body).unwrap()
}

#[rstest]
#[case::none_yet(3, "", "", "", 3)]
#[case::complete(2, "a:Running b:Pending", "", "", 0)]
#[case::one_missing(2, "a:Running", "", "", 1)]
#[case::one_that_says_nothing_counts(2, "a:Running b:", "", "", 0)]
#[case::one_that_goes_does_not_count(2, "a:Running b:Running:d", "", "", 1)]
#[case::failed_is_replaced(2, "a:Running b:Failed", "b", "", 1)]
#[case::failed_and_too_many(1, "a:Running b:Failed", "b", "", 0)]
#[case::failed_is_deleted_once(2, "a:Running b:Failed:d", "", "", 1)]
#[case::to_none(0, "a:Running b:Pending", "", "b a", 0)]
#[case::the_least_useful_first(2, "a:Running b:Unknown c:Pending d:CrashLoopBackOff", "", "d b", 0)]
#[case::without_node_before_with(1, "a:Pending:n b:Pending", "", "b", 0)]
#[case::the_newest_first(1, "a:Running:h03 b:Running:h05 c:Running:h04", "", "b c", 0)]
#[case::by_priority_first(1, "a:Running:1:h01 b:Pending:h02 c:Running:h03", "", "a b", 0)]
#[case::a_high_priority_stays_longest(1, "a:Pending:5 b:Running", "", "b", 0)]
#[case::a_priority_that_is_none(1, "a:Running:x:h01 b:Running:h02", "", "b", 0)]
fn a_set_keeps_its_number(
    #[case] replicas: usize,
    #[case] machines: &str,
    #[case] replace: &str,
    #[case] surplus: &str,
    #[case] create: usize,
) {
    let machines: Vec<_> = machines.split_whitespace().map(machine).collect();
    let plan = plan_changes(replicas, &machines.iter().collect::<Vec<_>>());
    assert_eq!(
        (plan.replace.join(" "), plan.surplus.join(" "), plan.create),
        (replace.to_owned(), surplus.to_owned(), create)
    );
}

#[test]
fn many_come_and_go_in_bursts() {
    assert_eq!(plan_changes(1000, &[]).create, BURST);
    let machines: Vec<_> = (0..200).map(|i| machine(&format!("m{i}:Running"))).collect();
    assert_eq!(
        plan_changes(0, &machines.iter().collect::<Vec<_>>())
            .surplus
            .len(),
        BURST
    );
}

#[test]
fn all_outgoing_machines_are_known_at_the_first_burst() {
    let all: Vec<_> = (0..BURST + 20)
        .map(|number| machine(&format!("m{number:03}:Running")))
        .collect();
    let failed = [machine("f:Failed"), machine("g:Running:d")];
    let all: Vec<_> = all.iter().chain(&failed).collect();
    assert_eq!(plan_changes(5, &all).surplus.len(), BURST);
    let leaving = outgoing_machines(5, &all);
    assert_eq!(leaving.len(), BURST + 20 - 5 + 1);
    assert!(leaving.iter().any(|machine| machine.name_any() == "f"));
}
