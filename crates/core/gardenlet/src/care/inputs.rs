//! The inputs of all conditions: the state of the control plane of a shoot, before any conclusion. `reading`
//! fills the inputs, and an `Observation` is a conclusion.

use std::collections::BTreeMap;

use api::{
    druid::Etcd,
    meta::{Condition, LastError, LastOperation},
    resources::ManagedResource,
};
use k8s_openapi::api::apps::v1::Deployment;

use super::webhooks::Webhooks;
use crate::node::SeenNode;

/// The state of an extension object.
#[derive(Clone, Debug)]
pub(super) struct Extension {
    /// Kind and name.
    pub title: String,
    /// The last operation.
    pub last_operation: Option<LastOperation>,
    /// The last error.
    pub last_error: Option<LastError>,
    /// Health of parts that the provider keeps for the shoot.
    pub conditions: Vec<Condition>,
}

/// The part of a Node that is kept.
#[derive(Debug)]
pub(super) struct NodeReadiness {
    /// The name of the Node.
    pub name: String,
    /// Whether the Node reports `Ready`.
    pub is_ready: bool,
}

impl NodeReadiness {
    /// The relevant fields of a Node.
    pub(super) fn from_node(node: &SeenNode) -> Self {
        Self {
            name: node.name().to_owned(),
            is_ready: node.is_ready(),
        }
    }
}

/// The observations of the control plane of a shoot.
#[derive(Debug)]
pub(super) struct CareInputs {
    /// Why the API is not available; `None` if the API is available.
    pub api_error: Option<String>,
    /// The API could not even be called.
    pub api_not_asked: bool,
    /// The Nodes, or the reason why the Nodes are unknown.
    pub nodes: std::result::Result<Vec<NodeReadiness>, String>,
    /// Webhooks in the shoot that can stop its control plane; `None` if the webhooks are unknown.
    pub webhooks: Option<Webhooks>,
    /// Deployments in the shoot's namespace.
    pub deployments: Vec<Deployment>,
    /// Reports of the pods of Deployments with missing pods, by the names of the Deployments.
    pub pod_reports: BTreeMap<String, String>,
    /// Etcds in the shoot's namespace.
    pub etcds: Vec<Etcd>,
    /// Extension objects of the shoot.
    pub extensions: Vec<Extension>,
    /// The ManagedResources for the seed and for the shoot.
    pub resources: Vec<ManagedResource>,
}
