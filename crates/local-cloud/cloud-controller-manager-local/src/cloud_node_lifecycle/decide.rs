//! Decides on a Node by condition and instance. Pure.

use cloud_local::{Inventory, ProviderId, State};
use k8s_openapi::api::core::v1::{Node, Taint};
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::nodes;

/// Taint of a Node with a stopped instance: no pods are scheduled on the Node, and volumes may be detached.
pub const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
/// Label with which a user excludes a Node from this controller.
pub const EXCLUDED: &str = "node.kubernetes.io/exclude-from-lifecycle-management";

/// The verdict from the Node alone, before a query of the cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeVerdict {
    /// Not handled by this controller: excluded, of a foreign cloud, or not described yet. An undescribed
    /// Node was never seen in the cloud, so the instance is not *gone*.
    NotOurs,
    /// The kubelet reports: the machine runs, regardless of the cloud.
    Ready,
    /// The kubelet does not report, or reports the Node as not ready: query the cloud for this instance.
    Ask(ProviderId),
}

/// The action for a Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// No action.
    Nothing,
    /// Add the taint.
    Taint,
    /// Remove the taint.
    Untaint,
    /// Remove the Node.
    Delete,
}

/// Reads the Node alone.
#[must_use]
pub fn judge_node(node: &Node) -> NodeVerdict {
    let id = nodes::provider_id(node).and_then(|id| id.parse().ok());
    match id {
        Some(id) if !node.labels().contains_key(EXCLUDED) => match nodes::ready(node) {
            Some("True") => NodeVerdict::Ready,
            _ => NodeVerdict::Ask(id),
        },
        _ => NodeVerdict::NotOurs,
    }
}

/// For a Node that is ready.
#[must_use]
pub fn decide_ready(node: &Node) -> Action {
    if nodes::is_tainted(node, SHUTDOWN) {
        Action::Untaint
    } else {
        Action::Nothing
    }
}

/// For a Node that is not ready, and an inventory that was read after the Node became not ready.
#[must_use]
pub fn decide_not_ready(node: &Node, id: &ProviderId, inventory: &Inventory) -> Action {
    let tainted = nodes::is_tainted(node, SHUTDOWN);
    match inventory.by_id(&id.id).map(|instance| instance.state) {
        None => Action::Delete,
        Some(State::Stopped) if !tainted => Action::Taint,
        Some(State::Running) if tainted => Action::Untaint,
        Some(_) => Action::Nothing,
    }
}

/// The change that adds or removes the taint. The change contains the resourceVersion of the decision: taints
/// are a single list with several writers.
#[must_use]
pub fn taints(node: &Node, on: bool) -> Value {
    let others = nodes::taints(node).iter().filter(|taint| taint.key != SHUTDOWN);
    let mut taints: Vec<Taint> = others.cloned().collect();
    if on {
        taints.push(Taint {
            key: SHUTDOWN.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        });
    }
    json!({
        "metadata": {"uid": node.uid(), "resourceVersion": node.resource_version()},
        "spec": {"taints": taints},
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn node(ready: Option<&str>, tainted: bool) -> Node {
        let mut taints = vec![json!({"key": "other", "effect": "NoExecute"})];
        if tainted {
            taints.push(json!({"key": SHUTDOWN, "effect": "NoSchedule"}));
        }
        let conditions: Vec<_> = ready
            .iter()
            .map(|status| json!({"type": "Ready", "status": status}))
            .collect();
        serde_json::from_value(json!({
            "metadata": {"name": "one", "uid": "u", "resourceVersion": "7"},
            "spec": {"providerID": "local:///a/i-1", "taints": taints},
            "status": {"conditions": conditions},
        }))
        .unwrap()
    }

    fn inventory(state: Option<&str>) -> Inventory {
        let other = json!({"id": "i-2", "addresses": [], "zone": "a", "region": "r", "type": "t", "state": "running"});
        let mut entries = vec![("one".to_owned(), serde_json::from_value(other.clone()).unwrap())];
        if let Some(state) = state {
            let mut ours = other;
            (ours["id"], ours["state"]) = (json!("i-1"), json!(state));
            entries.push(("renamed".to_owned(), serde_json::from_value(ours).unwrap()));
        }
        entries.into_iter().collect()
    }

    #[rstest]
    #[case::gone(None, false, Action::Delete)]
    #[case::gone_and_tainted(None, true, Action::Delete)]
    #[case::stopped(Some("stopped"), false, Action::Taint)]
    #[case::still_stopped(Some("stopped"), true, Action::Nothing)]
    #[case::runs_again(Some("running"), true, Action::Untaint)]
    #[case::runs(Some("running"), false, Action::Nothing)]
    fn a_node_that_is_not_ready(
        #[case] state: Option<&str>,
        #[case] tainted: bool,
        #[case] expected: Action,
    ) {
        for ready in [None, Some("False"), Some("Unknown")] {
            let node = node(ready, tainted);
            let NodeVerdict::Ask(id) = judge_node(&node) else {
                unreachable!("{:?}", judge_node(&node))
            };
            assert_eq!(
                decide_not_ready(&node, &id, &inventory(state)),
                expected,
                "{ready:?}"
            );
        }
    }

    #[test]
    fn a_node_that_is_ready_is_never_removed() {
        assert_eq!(judge_node(&node(Some("True"), false)), NodeVerdict::Ready);
        assert_eq!(decide_ready(&node(Some("True"), false)), Action::Nothing);
        assert_eq!(decide_ready(&node(Some("True"), true)), Action::Untaint);
    }

    #[rstest]
    #[case::no_id(json!({"spec": {"providerID": null}}))]
    #[case::of_another_cloud(json!({"spec": {"providerID": "kind://docker/a/b"}}))]
    #[case::excluded(json!({"metadata": {"labels": {EXCLUDED: ""}}}))]
    fn some_nodes_are_left_alone(#[case] change: Value) {
        let mut body = serde_json::to_value(node(Some("Unknown"), false)).unwrap();
        for (section, fields) in change.as_object().unwrap() {
            for (field, value) in fields.as_object().unwrap() {
                body[section][field] = value.clone();
            }
        }
        assert_eq!(
            judge_node(&serde_json::from_value(body).unwrap()),
            NodeVerdict::NotOurs
        );
    }

    #[test]
    fn other_taints_stay() {
        let on = taints(&node(None, false), true);
        assert_eq!(on["spec"]["taints"].as_array().unwrap().len(), 2);
        assert_eq!(on["metadata"], json!({"uid": "u", "resourceVersion": "7"}));
        let off = taints(&node(None, true), false);
        assert_eq!(
            off["spec"]["taints"],
            json!([{"key": "other", "effect": "NoExecute"}])
        );
    }
}
