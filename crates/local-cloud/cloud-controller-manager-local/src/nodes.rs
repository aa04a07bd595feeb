//! Reads and writes of Nodes for the controllers.

use k8s_openapi::api::core::v1::{Node, Taint};
use kube::{
    Api, ResourceExt,
    api::{Patch, PatchParams},
};
use serde_json::Value;

use crate::MANAGER;

/// The value of a Node's condition Ready; `None` without the condition.
pub fn ready(node: &Node) -> Option<&str> {
    let conditions = node.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready")?;
    Some(&ready.status)
}

/// A Node's taints.
pub fn taints(node: &Node) -> &[Taint] {
    node.spec
        .as_ref()
        .and_then(|spec| spec.taints.as_deref())
        .unwrap_or_default()
}

/// Whether a Node has a taint of this key.
pub fn is_tainted(node: &Node, key: &str) -> bool {
    taints(node).iter().any(|taint| taint.key == key)
}

/// A Node's `spec.providerID`, if set.
pub fn provider_id(node: &Node) -> Option<&str> {
    let id = node.spec.as_ref()?.provider_id.as_deref()?;
    (!id.is_empty()).then_some(id)
}

/// The UID that identifies the object among objects of this name.
pub fn uid(node: &Node) -> String {
    node.uid().unwrap_or_default()
}

/// Changes a Node. `body` must contain the resourceVersion of the decision where the change replaces a list
/// with several writers.
pub async fn patch(nodes: &Api<Node>, name: &str, body: Value) -> kube::Result<Node> {
    nodes.patch(name, &params(), &Patch::Merge(body)).await
}

/// As [`patch`], for the status.
pub async fn patch_status(nodes: &Api<Node>, name: &str, body: Value) -> kube::Result<Node> {
    nodes.patch_status(name, &params(), &Patch::Merge(body)).await
}

fn params() -> PatchParams {
    PatchParams {
        field_manager: Some(MANAGER.0.to_owned()),
        ..PatchParams::default()
    }
}
