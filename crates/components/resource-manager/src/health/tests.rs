use rstest::rstest;
use serde_json::json;

use super::*;

fn condition_of(type_: &str, status: &str) -> Value {
    json!([{"type": type_, "status": status, "reason": "Why"}])
}

/// The fault, and the pending part of the last change.
fn judged(group: &str, kind: &str, object: &Value) -> (String, String) {
    let Health { wrong, rolls } = assess(group, kind, object);
    (wrong.unwrap_or_default().into(), rolls.unwrap_or_default().into())
}

#[rstest]
#[case(json!({"status": {"conditions": condition_of("Available", "True"), "updatedReplicas": 1, "availableReplicas": 1, "replicas": 1}}), "", "")]
#[case(json!({"status": {"conditions": condition_of("Available", "False")}}), "it is not available (Why)", "0 of 1 replicas are of its last change")]
#[case(json!({"status": {"conditions": condition_of("Progressing", "False"), "updatedReplicas": 1, "availableReplicas": 1}}), "its rollout does not go on (Why)", "")]
#[case(json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1, "conditions": condition_of("Available", "True")}}), "", "its last change is not observed yet")]
#[case(json!({"status": {"conditions": condition_of("Available", "True"), "updatedReplicas": 1, "availableReplicas": 2, "replicas": 2}}), "", "1 old replicas are still there")]
#[case(json!({}), "it is not available yet", "0 of 1 replicas are of its last change")]
#[case(json!({"spec": {"replicas": 0}}), "", "")]
fn deployments(#[case] object: Value, #[case] wrong: &str, #[case] rolls: &str) {
    assert_eq!(
        judged("apps", "Deployment", &object),
        (wrong.to_owned(), rolls.to_owned())
    );
}

#[rstest]
#[case("StatefulSet", json!({"status": {"readyReplicas": 1, "replicas": 1}}), "", "")]
#[case("StatefulSet", json!({}), "0 of 1 replicas are ready", "0 of 1 replicas are of its last change")]
#[case("StatefulSet", json!({"spec": {"replicas": 0}}), "", "")]
#[case("DaemonSet", json!({"status": {"desiredNumberScheduled": 2, "numberReady": 2, "updatedNumberScheduled": 2, "numberAvailable": 2}}), "", "")]
#[case("DaemonSet", json!({"status": {"desiredNumberScheduled": 2, "numberReady": 1, "updatedNumberScheduled": 2, "numberAvailable": 1}}), "1 of 2 pods are ready", "1 of 2 replicas are available")]
#[case("DaemonSet", json!({"status": {"numberMisscheduled": 1}}), "1 pods are on nodes where they should not be", "")]
#[case("ReplicaSet", json!({"status": {"readyReplicas": 1}}), "", "")]
#[case("ReplicaSet", json!({"metadata": {"generation": 1}}), "0 of 1 replicas are ready", "its last change is not observed yet")]
fn sets(#[case] kind: &str, #[case] object: Value, #[case] wrong: &str, #[case] rolls: &str) {
    assert_eq!(
        judged("apps", kind, &object),
        (wrong.to_owned(), rolls.to_owned())
    );
}

#[rstest]
#[case("batch", "Job", json!({"status": {"conditions": condition_of("Complete", "True")}}), "", "")]
#[case("batch", "Job", json!({"status": {"conditions": condition_of("Failed", "True")}}), "it has failed (Why)", "")]
#[case("batch", "Job", json!({}), "", "it has not finished yet")]
#[case("", "Pod", json!({"status": {"phase": "Running", "conditions": condition_of("Ready", "True")}}), "", "")]
#[case("", "Pod", json!({"status": {"phase": "Running"}}), "it is not ready", "")]
#[case("", "Pod", json!({"status": {"phase": "Succeeded"}}), "", "")]
#[case("", "Pod", json!({"status": {"phase": "Failed"}}), "its phase is Failed", "")]
#[case("", "PersistentVolumeClaim", json!({"status": {"phase": "Bound"}}), "", "")]
#[case("", "PersistentVolumeClaim", json!({"status": {"phase": "Pending"}}), "it is not bound to a volume", "")]
#[case("", "Service", json!({"spec": {"type": "ClusterIP"}}), "", "")]
#[case("", "Service", json!({"spec": {"type": "LoadBalancer"}}), "its load balancer has no address yet", "")]
#[case("", "Service", json!({"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{}]}}}), "", "")]
#[case("apiextensions.k8s.io", "CustomResourceDefinition", json!({"status": {"conditions": condition_of("Established", "True")}}), "", "")]
#[case("apiextensions.k8s.io", "CustomResourceDefinition", json!({"status": {"conditions": condition_of("NamesAccepted", "False")}}), "its names are not accepted (Why)", "")]
#[case("apiextensions.k8s.io", "CustomResourceDefinition", json!({}), "its kind is not served yet", "")]
#[case("apiregistration.k8s.io", "APIService", json!({"status": {"conditions": condition_of("Available", "True")}}), "", "")]
#[case("apiregistration.k8s.io", "APIService", json!({"status": {"conditions": condition_of("Available", "False")}}), "it is not available (Why)", "")]
#[case("", "ConfigMap", json!({}), "", "")]
#[case("example.org", "Deployment", json!({}), "", "")]
fn others(
    #[case] group: &str,
    #[case] kind: &str,
    #[case] object: Value,
    #[case] wrong: &str,
    #[case] rolls: &str,
) {
    assert_eq!(judged(group, kind, &object), (wrong.to_owned(), rolls.to_owned()));
}
