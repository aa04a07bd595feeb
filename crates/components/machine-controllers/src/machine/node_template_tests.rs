#![allow(clippy::unwrap_used)]
use super::*;

fn node(body: Value) -> Node {
    serde_json::from_value(body).unwrap()
}

fn template(body: Value) -> NodeTemplateSpec {
    serde_json::from_value(body).unwrap()
}

/// Applies a merge patch as the server does.
fn merged(node: &Node, body: &Value) -> Node {
    let mut whole = serde_json::to_value(node).unwrap();
    json_patch::merge(&mut whole, body);
    serde_json::from_value(whole).unwrap()
}

/// Kubernetes' cloud-controller-manager for AWS finds a Node without this ID only by the private DNS name of
/// the instance, and no Node has this name.
#[test]
fn a_node_gets_the_id_of_its_machine_where_it_has_none() {
    let machine = |id: Value| -> Machine {
        serde_json::from_value(json!({"metadata": {"name": "m"}, "spec": {"providerID": id}})).unwrap()
    };
    let made = machine(json!("aws:///z/i-1"));
    assert_eq!(
        missing_provider_id(&made, &node(json!({"spec": {}}))),
        Some("aws:///z/i-1")
    );
    assert_eq!(
        missing_provider_id(&made, &node(json!({"spec": {"providerID": ""}}))),
        Some("aws:///z/i-1")
    );
    assert_eq!(
        missing_provider_id(&made, &node(json!({"spec": {"providerID": "aws:///z/i-2"}}))),
        None
    );
    assert_eq!(
        missing_provider_id(&machine(json!(null)), &node(json!({"spec": {}}))),
        None
    );
}

#[test]
fn what_the_template_says_comes_and_goes_and_what_others_say_stays() {
    let first = template(json!({
        "metadata": {"labels": {"pool": "a", "old": "1"}, "annotations": {"note": "x"}},
        "spec": {"taints": [{"key": "dedicated", "value": "a", "effect": "NoSchedule"}, {"key": "t", "effect": "NoExecute"}]},
    }));
    let bare = node(json!({
        "metadata": {"name": "n", "labels": {"kubernetes.io/hostname": "n"}, "annotations": {"theirs": "y"}},
        "spec": {"taints": [{"key": "theirs", "effect": "NoSchedule"}]},
    }));
    let equipped = merged(&bare, &node_patch(&bare, &first).unwrap().unwrap());
    assert_eq!(equipped.labels()["pool"], "a");
    assert_eq!(equipped.annotations()["note"], "x");
    assert_eq!(equipped.spec.as_ref().unwrap().taints.as_ref().unwrap().len(), 3);
    assert_eq!(
        node_patch(&equipped, &first).unwrap(),
        None,
        "a second look changes nothing"
    );

    let second = template(json!({
        "metadata": {"labels": {"pool": "b"}},
        "spec": {"taints": [{"key": "dedicated", "value": "b", "effect": "NoSchedule"}]},
    }));
    let changed = merged(&equipped, &node_patch(&equipped, &second).unwrap().unwrap());
    assert_eq!(
        changed.labels(),
        &BTreeMap::from([
            ("kubernetes.io/hostname".to_owned(), "n".to_owned()),
            ("pool".to_owned(), "b".to_owned())
        ])
    );
    assert!(changed.annotations().contains_key("theirs") && !changed.annotations().contains_key("note"));
    let taints = changed.spec.as_ref().unwrap().taints.clone().unwrap();
    let told: Vec<_> = taints
        .iter()
        .map(|t| (t.key.as_str(), t.value.as_deref()))
        .collect();
    assert_eq!(told, [("theirs", None), ("dedicated", Some("b"))]);
    assert_eq!(node_patch(&changed, &second).unwrap(), None);
}

#[test]
fn a_node_without_template_is_left_alone_and_a_record_that_is_no_record_takes_nothing_away() {
    let none = NodeTemplateSpec::default();
    assert_eq!(
        node_patch(&node(json!({"metadata": {"name": "n"}})), &none).unwrap(),
        None
    );
    let odd = node(json!({"metadata": {"name": "n", "labels": {"a": "b"}, "annotations": {APPLIED: "}{"}}}));
    assert_eq!(node_patch(&odd, &none).unwrap(), None);
}
