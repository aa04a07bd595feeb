//! cloud-node-lifecycle-controller: removes a Node whose instance is gone, and marks a Node whose instance is
//! stopped.
//!
//! A Node is removed only if all conditions hold at once:
//! - The kubelet does not report the Node as ready.
//! - The Node has the id of an instance of this cloud.
//! - A complete list of instances does not contain the id.
//!
//! A missing or invalid answer of the cloud leaves every Node in place (I4).
//!
//! This controller is more careful than Kubernetes' own controller in two respects. A Node that the cloud
//! never described is not removed. A Node is removed only in the resourceVersion of the decision, so that a
//! concurrent report of the kubelet wins.

mod decide;

use std::{sync::Arc, time::Duration};

use cloud_local::Instances;
use futures::Future;
use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Preconditions},
    runtime::watcher,
};
use runtime::{
    Result,
    client::{Cluster, Shoot},
    controller::{
        Events, Next, Reconciler,
        runner::{self, Settings},
    },
    error::Explain as _,
};
use serde_json::Value;
use tracing::info;

pub use decide::{
    Action, EXCLUDED, NodeVerdict, SHUTDOWN, decide_not_ready, decide_ready, judge_node, taints,
};

use crate::nodes;

/// The controller.
pub struct CloudNodeLifecycle {
    shoot: Shoot,
    instances: Arc<Instances>,
    events: Events,
    look_every: Duration,
}

impl CloudNodeLifecycle {
    /// For the Nodes of this shoot. For a Node that is not ready, the cloud is queried every `look_every`.
    #[must_use]
    pub fn new(shoot: Shoot, instances: Arc<Instances>, events: Events, look_every: Duration) -> Self {
        Self {
            shoot,
            instances,
            events,
            look_every,
        }
    }

    /// Runs until shutdown.
    pub fn run(self, settings: Settings) -> impl Future<Output = ()> + Send {
        let nodes: Api<Node> = self.shoot.cluster_wide();
        let controller = runner::controller(nodes.clone(), watcher::Config::default(), fingerprint);
        runner::run(controller, move |_| nodes.clone(), Arc::new(self), settings)
    }

    async fn act(&self, node: &Node, action: Action) -> Result<()> {
        match action {
            Action::Nothing => Ok(()),
            Action::Taint => {
                self.change(node, taints(node, true), "the instance is stopped")
                    .await
            }
            Action::Untaint => self.change(node, taints(node, false), "the instance runs").await,
            Action::Delete => self.delete(node).await,
        }
    }

    async fn change(&self, node: &Node, body: Value, why: &str) -> Result<()> {
        let name = node.name_any();
        let changed = nodes::patch(&self.shoot.cluster_wide(), &name, body).await;
        info!(node = name, why, "the taint {SHUTDOWN} is changed");
        overtaken(changed).context(format_args!("could not change the taints of Node {name}"))
    }

    async fn delete(&self, node: &Node) -> Result<()> {
        let name = node.name_any();
        let message = format!("Node {name} is removed, because its instance is not in the cloud any more");
        self.events.normal(node, "DeletingNode", &message).await;
        let exactly = DeleteParams {
            preconditions: Some(Preconditions {
                uid: node.uid(),
                resource_version: node.resource_version(),
            }),
            ..DeleteParams::default()
        };
        let nodes: Api<Node> = self.shoot.cluster_wide();
        let deleted = nodes.delete(&name, &exactly).await;
        info!(node = name, done = deleted.is_ok(), "{message}");
        overtaken(deleted).context(format_args!("could not remove Node {name}"))
    }
}

/// A Node that is gone or has changed since the decision is no failure: the Node is reconciled again.
fn overtaken<T>(outcome: kube::Result<T>) -> kube::Result<()> {
    match outcome {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
        Err(error) => Err(error),
    }
}

impl Reconciler<Node> for CloudNodeLifecycle {
    const NAME: &'static str = "cloud-node-lifecycle-controller";

    fn is_responsible(&self, node: &Node) -> bool {
        judge_node(node) != NodeVerdict::NotOurs
    }

    async fn apply(&self, node: Arc<Node>) -> Result<Next> {
        match judge_node(&node) {
            NodeVerdict::NotOurs => Ok(Next::Change),
            NodeVerdict::Ready => {
                let action = decide_ready(&node);
                self.act(&node, action).await?;
                // A write that lost against a concurrent write is repeated.
                Ok(match action {
                    Action::Nothing => Next::Change,
                    _ => Next::After(self.look_every),
                })
            }
            NodeVerdict::Ask(id) => {
                let inventory = self.instances.read().await?;
                self.act(&node, decide_not_ready(&node, &id, &inventory)).await?;
                Ok(Next::After(self.look_every))
            }
        }
    }

    async fn cleanup(&self, _: Arc<Node>) -> Result<Next> {
        Ok(Next::Change)
    }
}

/// The input of the decision.
fn fingerprint(node: &Node) -> Option<u64> {
    runner::fingerprint((
        nodes::uid(node),
        node.metadata.deletion_timestamp.is_some(),
        nodes::ready(node),
        nodes::is_tainted(node, SHUTDOWN),
        nodes::provider_id(node),
        node.labels().contains_key(EXCLUDED),
    ))
}
