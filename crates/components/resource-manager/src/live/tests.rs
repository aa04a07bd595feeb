#![allow(clippy::unwrap_used, clippy::panic)]
use serde_json::{Value, json};

use super::*;
use crate::{
    health,
    object::Handling,
    plan::{self, Step},
};

fn live(object: &Value) -> Live {
    serde_json::from_str(&object.to_string()).unwrap()
}

/// The size of a value, in parts.
fn parts(value: &Value) -> usize {
    match value {
        Value::Array(all) => 1 + all.iter().map(parts).sum::<usize>(),
        Value::Object(all) => 1 + all.values().map(parts).sum::<usize>(),
        _ => 1,
    }
}

fn many<T: Clone + Into<Value>>(of: T) -> Value {
    Value::Array(vec![of.into(); 10_000])
}

fn map_of_many() -> Value {
    Value::Object((0..10_000).map(|n| (format!("a{n}"), json!(""))).collect())
}

#[test]
fn what_is_looked_at_is_there() {
    let pod =
        json!({"spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}]}});
    let object = live(&json!({
        "metadata": {"name": "n", "namespace": "s", "uid": "u", "resourceVersion": "7", "generation": 3,
            "annotations": {RESOURCES_ORIGIN: "s/m", "resources.gardener.cloud/preserve-resources": "true"}, "labels": {"a": "b"}},
        "spec": {"replicas": 2, "template": pod},
        "status": {"observedGeneration": 3, "updatedReplicas": 2, "availableReplicas": 2, "replicas": 2,
            "conditions": [{"type": "Available", "status": "True", "message": "long"}]},
    }));
    assert_eq!(object.meta().resource_version.as_deref(), Some("7"));
    assert_eq!(object.origin(), Some("s/m"));
    assert_eq!(
        health::assess("apps", "Deployment", object.value()),
        health::Health::default()
    );
    let handling = Handling::from_object(object.value()).unwrap();
    let wanted = json!({"metadata": {}, "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}});
    let Step::Send(sent) = plan::step(&handling, wanted, Some(object.value())) else {
        panic!("it is not sent");
    };
    let resources = sent.pointer("/spec/template/spec/containers/0/resources");
    assert_eq!(resources, Some(&json!({"limits": {"cpu": "1"}})));
    assert_eq!(sent["metadata"]["resourceVersion"], "7");
}

/// A user with write access in a shoot can fill each field that is read, and all other fields.
#[test]
fn however_large_an_object_is_little_of_it_is_kept() {
    let text = "x".repeat(100_000);
    let container = json!({"name": text, "resources": {"limits": map_of_many(), "claims": many(json!({}))}, "env": many(json!({}))});
    let pod = json!({"spec": {"containers": many(json!({})), "initContainers": [container], "tolerations": many(json!({}))}});
    let condition = json!({"type": "Available", "status": "False", "reason": text, "message": text});
    let mut labels = map_of_many();
    labels[RESOURCES_ORIGIN] = json!("s/m");
    let managers: Vec<_> = (0..1000)
        .map(|n| json!({"manager": format!("m{n}"), "operation": "Apply", "fieldsV1": map_of_many()}))
        .collect();
    let object = live(&json!({
        "metadata": {"name": "n", "labels": labels, "annotations": labels, "finalizers": many("a/b"), "managedFields": managers,
            "ownerReferences": many(json!({}))},
        "spec": {"template": pod, "selector": {"matchLabels": map_of_many()}, "versions": many(json!({})),
            "volumeClaimTemplates": many(json!({"metadata": {"name": "a"}}))},
        "status": {"conditions": vec![condition; 100], "loadBalancer": {"ingress": many(json!({}))}},
        "data": map_of_many(),
    }));
    let kept = parts(object.value());
    assert!(kept < 2000, "{kept} parts are kept");
    let bytes = object.value().to_string().len();
    assert!(bytes < 200_000, "{bytes} bytes are kept");
    // The annotations of this process are kept among many annotations of other writers.
    assert_eq!(object.origin(), Some("s/m"));
    let told = health::assess("apps", "Deployment", object.value())
        .wrong
        .unwrap_or_default();
    assert!(told.len() < 2000, "{} bytes are told", told.len());
}

/// Custom kinds have fields of these names, too.
#[test]
fn what_is_of_another_shape_is_nothing() {
    for odd in [
        json!(null),
        json!(7),
        json!("x"),
        json!([]),
        json!([[1]]),
        json!({"a": [{}]}),
        json!(true),
        json!(0.5),
    ] {
        let object = live(&json!({
            "metadata": {"name": "n"},
            "spec": {"replicas": odd, "selector": odd, "template": odd, "containers": odd, "type": odd, "volumeClaimTemplates": odd},
            "status": odd,
        }));
        for kind in ["Deployment", "StatefulSet", "DaemonSet"] {
            let _judged = health::assess("apps", kind, object.value());
        }
        assert!(
            live(&json!({"spec": odd, "status": {"conditions": odd}}))
                .origin()
                .is_none()
        );
    }
}

/// The JSON reader stops at a depth of 128, and an API server accepts deeper objects.
#[test]
fn however_deep_an_object_is_it_is_read() {
    let deep = |steps: usize| format!("{}{{}}{}", "{\"f:a\":".repeat(steps), "}".repeat(steps));
    let manager = |name: &str, steps| {
        format!(
            r#"{{"manager":"{name}","operation":"Apply","fieldsV1":{}}}"#,
            deep(steps)
        )
    };
    let of = |steps| {
        let managers = [manager("somebody", 5000), manager("resource-manager", steps)].join(",");
        let text = format!(
            r#"{{"metadata":{{"name":"n","managedFields":[{managers}]}},"spec":{{"versions":{0},"template":{0}}},"status":{{"conditions":[{0}]}}}}"#,
            deep(5000)
        );
        serde_json::from_str::<Live>(&text).unwrap().marks()
    };
    assert_ne!(of(1), of(2));
    assert_eq!(of(5000), of(5001), "so deep is nothing of ours");
}

#[test]
fn a_change_is_noticed_and_the_order_of_fields_is_none() {
    let of = |labels: Value, fields: &str| {
        let text = format!(
            r#"{{"metadata":{{"uid":"u","labels":{labels},"managedFields":[{{"manager":"resource-manager","operation":"Apply","fieldsV1":{fields}}}]}}}}"#
        );
        serde_json::from_str::<Live>(&text).unwrap().marks()
    };
    let one = of(
        json!({"a": "b", "c": "d"}),
        r#"{"f:x":{},"f:y":{".":{},"k:{\"n\":1}":{}}}"#,
    );
    let same = of(
        json!({"c": "d", "a": "b"}),
        r#"{"f:y":{"k:{\"n\":1}":{},".":{}},"f:x":{}}"#,
    );
    assert_eq!(one, same);
    let other_label = of(
        json!({"a": "d", "c": "b"}),
        r#"{"f:x":{},"f:y":{".":{},"k:{\"n\":1}":{}}}"#,
    );
    assert!(other_label.hold(one, false) && !other_label.hold(one, true));
    let less = of(json!({"a": "b", "c": "d"}), r#"{"f:x":{},"f:y":{".":{}}}"#);
    assert!(!less.hold(one, false));
}
