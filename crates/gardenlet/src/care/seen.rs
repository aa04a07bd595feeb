//! What was seen of a shoot's control plane, before anything is concluded from it.

use std::collections::BTreeMap;

use api::{
    druid::Etcd,
    meta::{Condition, LastError, LastOperation},
    resources::ManagedResource,
};
use k8s_openapi::api::apps::v1::Deployment;

use super::webhooks::Webhooks;
use crate::node::SeenNode;

/// How an extension object stands.
#[derive(Clone, Debug)]
pub(super) struct Extension {
    /// Kind and name.
    pub title: String,
    /// What was done last.
    pub last_operation: Option<LastOperation>,
    /// What stood in the way last.
    pub last_error: Option<LastError>,
    /// Health of parts that the provider keeps for the shoot.
    pub conditions: Vec<Condition>,
}

/// What is kept of a node.
#[derive(Debug)]
pub(super) struct NodeSeen {
    /// Its name.
    pub name: String,
    /// Whether it says that it is.
    pub is_ready: bool,
}

impl NodeSeen {
    /// What counts of it.
    pub(super) fn of(node: &SeenNode) -> Self {
        Self {
            name: node.name().to_owned(),
            is_ready: node.is_ready(),
        }
    }
}

/// What was seen of a shoot's control plane.
#[derive(Debug)]
pub(super) struct Observed {
    /// Why the API is not available; `None` if it is.
    pub api_error: Option<String>,
    /// The API could not even be asked.
    pub api_not_asked: bool,
    /// The nodes, or why they are not known.
    pub nodes: std::result::Result<Vec<NodeSeen>, String>,
    /// Webhooks in the shoot that can stop its control plane; `None` if they are not known.
    pub webhooks: Option<Webhooks>,
    /// Deployments in the shoot's namespace.
    pub deployments: Vec<Deployment>,
    /// What the pods of Deployments that lack some say, by the names of the Deployments.
    pub said: BTreeMap<String, String>,
    /// Etcds in the shoot's namespace.
    pub etcds: Vec<Etcd>,
    /// Extension objects of the shoot.
    pub extensions: Vec<Extension>,
    /// What is applied to the seed and to the shoot.
    pub resources: Vec<ManagedResource>,
}
