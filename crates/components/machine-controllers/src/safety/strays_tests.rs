#![allow(clippy::unwrap_used)]
use std::sync::Arc;

use serde_json::json;

use super::*;

const LEAST: Duration = Duration::from_secs(300);

fn node(name: &str, id: &str, annotation: &str) -> Node {
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": name, "annotations": {NOT_MANAGED: annotation}}, "spec": {"providerID": id},
    }))
    .unwrap()
}

fn machine(name: &str, node: &str, id: &str) -> Arc<Machine> {
    let machine = json!({"metadata": {"name": name, "labels": {"node": node}}, "spec": {"providerID": id}});
    Arc::new(serde_json::from_value(machine).unwrap())
}

#[test]
fn a_node_is_reported_that_has_had_no_machine_for_long_enough() {
    let nodes = [
        node("named", "", ""),
        node("known-by-id", "cloud:///i-2", ""),
        node("m-3", "", ""),
        node("accepted", "", "true"),
        node("stray", "cloud:///i-9", "1"),
    ];
    let machines = [
        machine("m-1", "named", ""),
        machine("m-2", "", "cloud:///i-2"),
        machine("m-3", "", ""),
    ];
    let (mut strays, began) = (Strays::default(), Instant::now());
    let undecided = StrayNodes {
        is_undecided: true,
        ..StrayNodes::default()
    };
    assert_eq!(strays.record(&nodes, &machines, began, LEAST), undecided);
    let reported = StrayNodes {
        names: ["stray".to_owned()].into(),
        is_undecided: false,
    };
    assert_eq!(strays.record(&nodes, &machines, began + LEAST, LEAST), reported);
    // A Node that had a Machine in between is not reported at once.
    assert_eq!(
        strays.record(&nodes[..4], &machines, began + LEAST, LEAST),
        StrayNodes::default()
    );
    assert_eq!(
        strays.record(&nodes, &machines, began + 2 * LEAST, LEAST),
        undecided
    );
}
