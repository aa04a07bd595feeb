//! Selects the pods that have to leave, and explains why pods did not leave: pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use kube::{Resource, ResourceExt};
use runtime::bounds::some_of;

/// Pods that did not leave, each with the reason.
pub type Refusals = BTreeMap<String, String>;

/// Pods named in a sentence. More would not fit into an Event.
const NAMED: usize = 5;

/// Whether a Node is not empty while this pod is on the Node. Pods of DaemonSets would come again at once,
/// mirror pods belong to the kubelet, and finished pods go with the Node.
///
/// The eviction, the wait and the forced deletion all use this function: a pod that is skipped here is never
/// deleted either, and ends with the instance.
pub fn has_to_leave(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let is_of_daemon_set = pod
        .meta()
        .owner_references
        .iter()
        .flatten()
        .any(|owner| owner.controller == Some(true) && owner.kind == "DaemonSet");
    !is_of_daemon_set
        && !pod.annotations().contains_key("kubernetes.io/config.mirror")
        && !matches!(phase, Some("Succeeded" | "Failed"))
}

/// The namespace and the name of a pod.
pub fn format_name(pod: &Pod) -> String {
    format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any())
}

/// Describes the pods that are left, each with the reason.
pub fn describe_pods(left: &[String], refused: &Refusals) -> String {
    let descriptions = left.iter().map(|pod| match refused.get(pod) {
        Some(why) => format!("{pod} ({why})"),
        None => pod.clone(),
    });
    // Pods with a reason come first, because a user has to act on these pods.
    let (mut kept, mut others): (Vec<_>, Vec<_>) = descriptions.partition(|text| text.contains(" ("));
    kept.append(&mut others);
    some_of(&kept, NAMED)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case::plain(json!({"metadata": {"name": "p"}}), true)]
    #[case::of_a_replica_set(json!({"metadata": {"name": "p", "ownerReferences": [{"apiVersion": "v", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": true}]}}), true)]
    #[case::of_a_daemon_set(json!({"metadata": {"name": "p", "ownerReferences": [{"apiVersion": "v", "kind": "DaemonSet", "name": "r", "uid": "u", "controller": true}]}}), false)]
    #[case::mirror(json!({"metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}}), false)]
    #[case::done(json!({"metadata": {"name": "p"}, "status": {"phase": "Succeeded"}}), false)]
    #[case::running(json!({"metadata": {"name": "p"}, "status": {"phase": "Running"}}), true)]
    fn some_pods_need_not_leave(#[case] pod: Value, #[case] expected: bool) {
        assert_eq!(has_to_leave(&serde_json::from_value(pod).unwrap()), expected);
    }

    #[test]
    fn what_keeps_a_pod_is_told_first_and_the_sentence_stays_short() {
        let left: Vec<_> = (0..7).map(|i| format!("n/p{i}")).collect();
        let refused = Refusals::from([("n/p6".to_owned(), "The disruption budget web needs 2".to_owned())]);
        assert_eq!(
            describe_pods(&left, &refused),
            "n/p6 (The disruption budget web needs 2), n/p0, n/p1, n/p2, n/p3 and 2 more"
        );
        assert_eq!(describe_pods(&left[..1], &Refusals::new()), "n/p0");
    }
}
