//! Webhooks that can stop a wake-up, and the constraint that reports the webhooks.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};

use super::*;

/// On all writes of these resources.
fn rule(group: &str, resources: &[&str]) -> Value {
    json!([{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": resources}])
}

fn survey_webhook(webhook: &Value) -> Webhooks {
    let mut webhook = webhook.clone();
    webhook["name"] = json!("w.example.test");
    let configuration = json!({"metadata": {"name": "users"}, "webhooks": [webhook]});
    let mut found = Webhooks::default();
    let configuration = serde_json::from_value(configuration).unwrap();
    found.add("ValidatingWebhookConfiguration", &configuration);
    found
}

#[track_caller]
fn assert_reason(webhook: &Value, reason: Option<&str>) {
    let constraint = survey_webhook(webhook).constraint(&Time(jiff::Timestamp::UNIX_EPOCH));
    let told = (constraint.status == ConditionStatus::False).then_some(constraint.reason.as_str());
    assert_eq!(told, reason, "{webhook}");
}

/// Case 8: kube-controller-manager stops a renewal after 5 s, and the API server ignores the webhook only
/// after 10 s.
#[test]
fn a_webhook_on_leases_that_is_ignored_too_late_stops_leader_election() {
    let leases = rule("coordination.k8s.io", &["leases"]);
    let with = |policy: &str, seconds: Option<u32>| json!({"rules": leases, "failurePolicy": policy, "timeoutSeconds": seconds});
    for webhook in [
        with("Ignore", Some(10)),
        with("Ignore", None),
        with("Ignore", Some(4)),
        with("Fail", Some(1)),
        json!({"rules": leases}),
    ] {
        assert_reason(&webhook, Some(WEBHOOKS_ON_LEASES));
    }
    assert_reason(&with("Ignore", Some(3)), None);
}

#[test]
fn a_webhook_on_objects_of_the_control_plane_stops_a_wake_up() {
    for (group, resource) in [
        ("", "nodes"),
        ("", "pods"),
        ("", "pods/binding"),
        ("", "*"),
        ("", "services"),
        ("discovery.k8s.io", "endpointslices"),
        ("apps", "daemonsets"),
        ("certificates.k8s.io", "certificatesigningrequests"),
        ("rbac.authorization.k8s.io", "clusterroles"),
        ("apps", "*/scale"),
    ] {
        let webhook = json!({"rules": rule(group, &[resource])});
        assert_reason(&webhook, Some(PROBLEMATIC_WEBHOOKS));
        let mut ignored = webhook.clone();
        ignored["failurePolicy"] = json!("Ignore");
        assert_reason(&ignored, None);
        ignored["timeoutSeconds"] = json!(16);
        assert_reason(&ignored, Some(PROBLEMATIC_WEBHOOKS));
    }
    assert_reason(&json!({"rules": rule("*", &["*/*"])}), Some(WEBHOOKS_ON_LEASES));
}

/// The machine controller deletes Pods and Nodes when a shoot is put to sleep.
#[test]
fn a_webhook_on_deletions_of_pods_and_nodes_stops_a_sleep() {
    let deletions = |group: &str, resource: &str| json!([{"apiGroups": [group], "apiVersions": ["*"], "operations": ["DELETE"], "resources": [resource]}]);
    for (group, resource) in [("", "pods"), ("", "nodes"), ("*", "*"), ("*", "*/*")] {
        let webhook = json!({"rules": deletions(group, resource), "failurePolicy": "Fail"});
        assert_reason(&webhook, Some(PROBLEMATIC_WEBHOOKS));
        let mut ignored = webhook.clone();
        ignored["failurePolicy"] = json!("Ignore");
        assert_reason(&ignored, None);
    }
    let excluded = json!({"matchExpressions": [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]});
    assert_reason(
        &json!({"rules": deletions("", "pods"), "namespaceSelector": excluded}),
        None,
    );
}

#[test]
fn a_webhook_that_leaves_the_control_plane_alone_is_not_reported() {
    let pods = rule("", &["pods"]);
    for webhook in [
        json!({"rules": rule("example.test", &["*"])}),
        json!({"rules": rule("", &["events", "persistentvolumeclaims"])}),
        json!({"rules": [{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CONNECT"], "resources": ["*/*"]}]}),
        json!({"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["DELETE"], "resources": ["configmaps", "pods/status"]}]}),
        json!({"rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["nodes"], "scope": "Namespaced"}]}),
        json!({"rules": pods, "namespaceSelector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]}]}}),
        json!({"rules": pods, "namespaceSelector": {"matchLabels": {"injected": "true"}}}),
        json!({"rules": pods, "objectSelector": {"matchLabels": {"injected": "true"}}}),
        json!({"rules": pods, "matchConditions": [{"name": "a", "expression": "false"}]}),
        json!({"rules": []}),
    ] {
        assert_reason(&webhook, None);
    }
    // A namespaceSelector selects no objects of the cluster.
    let nodes =
        json!({"rules": rule("", &["nodes"]), "namespaceSelector": {"matchLabels": {"injected": "true"}}});
    assert_reason(&nodes, Some(PROBLEMATIC_WEBHOOKS));
}

#[test]
fn the_constraint_names_the_webhook_and_the_remedy() {
    let now = Time(jiff::Timestamp::UNIX_EPOCH);
    let bad = survey_webhook(&json!({"rules": rule("", &["nodes"])}));
    let mut constraints = Vec::new();
    let news = bad.news(&constraints, &now).unwrap();
    bad.set_condition(&now, &mut constraints);
    assert_eq!(constraints[0].message, news);
    assert_eq!(constraints[0].codes, [ErrorCode::ErrProblematicWebhook]);
    for part in [
        "ValidatingWebhookConfiguration users (webhook w.example.test, failurePolicy Fail, timeoutSeconds 10)",
        "remedy: exclude the namespaces",
    ] {
        assert!(news.contains(part), "{news}");
    }
    assert_eq!(bad.news(&constraints, &now), None, "a warning is given once");
    Webhooks::default().set_condition(&now, &mut constraints);
    assert_eq!(constraints[0].status, ConditionStatus::True);
    assert!(constraints[0].codes.is_empty());
    assert_eq!(Webhooks::default().news(&constraints, &now), None);
}
