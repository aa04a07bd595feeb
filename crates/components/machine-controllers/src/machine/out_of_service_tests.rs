#![allow(clippy::unwrap_used)]
use rstest::rstest;

use super::*;

/// A Node whose kubelet is silent, with a taint of a different writer.
fn node(annotations: &Value, taint: bool) -> Node {
    let mut taints = vec![json!({"key": "other", "effect": "NoSchedule"})];
    taints.extend(
        taint.then(|| json!({"key": OUT_OF_SERVICE, "value": "nodeshutdown", "effect": "NoExecute"})),
    );
    serde_json::from_value(json!({
        "metadata": {"name": "n", "annotations": annotations}, "spec": {"taints": taints},
        "status": {"conditions": [{"type": "Ready", "status": "Unknown"}]},
    }))
    .unwrap()
}

fn applied(node: &Node, power: InstancePower) -> (&'static str, Node) {
    let Some(change) = Marks::from_node(node).change(power) else {
        return ("", node.clone());
    };
    let mut whole = json!(node);
    json_patch::merge(&mut whole, &change.body(node));
    (change.reason, serde_json::from_value(whole).unwrap())
}

#[rstest]
#[case::off(json!({}), false, InstancePower::Off, "InstanceIsOff", true)]
#[case::runs(json!({}), false, InstancePower::Running, "", false)]
#[case::unclear(json!({}), false, InstancePower::Unclear, "", false)]
#[case::claimed_while_unclear(json!({INSTANCE_OFF: "true"}), false, InstancePower::Unclear, "InstanceIsOff", true)]
#[case::claimed_with_another_value(json!({INSTANCE_OFF: "no"}), false, InstancePower::Unclear, "", false)]
#[case::claimed_while_it_runs(json!({INSTANCE_OFF: "true"}), false, InstancePower::Running, "InstanceIsRunning", false)]
#[case::runs_again(json!({OUT_OF_SERVICE_BY: "provider"}), true, InstancePower::Running, "InstanceIsBack", false)]
#[case::runs_against_the_claim(json!({OUT_OF_SERVICE_BY: "user", INSTANCE_OFF: "true"}), true, InstancePower::Running, "InstanceIsBack", false)]
#[case::claim_withdrawn(json!({OUT_OF_SERVICE_BY: "user"}), true, InstancePower::Unclear, "InstanceIsBack", false)]
#[case::claim_withdrawn_from_an_instance_that_is_off(json!({OUT_OF_SERVICE_BY: "user"}), true, InstancePower::Off, "", true)]
#[case::provider_is_silent_later(json!({OUT_OF_SERVICE_BY: "provider"}), true, InstancePower::Unclear, "", true)]
#[case::taint_of_the_user(json!({}), true, InstancePower::Running, "", true)]
#[case::taint_of_the_user_and_claim(json!({INSTANCE_OFF: "true"}), true, InstancePower::Running, "InstanceIsRunning", true)]
fn a_node_is_out_of_service_only_while_its_instance_is_off(
    #[case] annotations: Value,
    #[case] taint: bool,
    #[case] power: InstancePower,
    #[case] reason: &str,
    #[case] is_tainted: bool,
) {
    let before = node(&annotations, taint);
    let (reported, after) = applied(&before, power);
    assert_eq!(reported, reason);
    let taints = after.spec.clone().unwrap().taints.unwrap();
    assert_eq!(taints.iter().any(is_out_of_service), is_tainted);
    assert!(taints.iter().any(|taint| taint.key == "other"));
    // The second round changes no field, and a refused annotation cannot count later.
    assert_eq!(applied(&after, power), ("", after.clone()));
    if power == InstancePower::Running {
        assert!(!after.annotations().contains_key(INSTANCE_OFF));
    }
}

#[test]
fn only_a_silent_kubelet_leaves_the_question_open() {
    let mut node = node(&json!({}), false);
    assert!(is_kubelet_silent(&node));
    for status in ["True", "False"] {
        node.status.as_mut().unwrap().conditions.as_mut().unwrap()[0].status = status.into();
        assert!(!is_kubelet_silent(&node), "the kubelet reports {status}");
    }
    node.status = None;
    assert!(!is_kubelet_silent(&node), "a new Node");
}
