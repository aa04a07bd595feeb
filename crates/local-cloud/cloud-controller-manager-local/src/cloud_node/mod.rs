//! cloud-node-controller: describes a new Node with data of the cloud, and keeps the Node's addresses up to
//! date.
//!
//! A kubelet that runs with `--cloud-provider=external` registers the Node with the taint
//! `node.cloudprovider.kubernetes.io/uninitialized`. First, this controller writes the addresses of such a
//! Node. Then a single write sets `spec.providerID` and the labels of zone, region and instance type, and
//! removes the taint. A Node without an instance keeps the taint until the cloud lists an instance. A Node
//! with the id of a foreign cloud is not touched.

mod decide;

use std::{sync::Arc, time::Duration};

use cloud_local::Instances;
use futures::Future;
use k8s_openapi::api::core::v1::Node;
use kube::{Api, ResourceExt, runtime::watcher};
use runtime::{
    Error, Result,
    client::{Cluster, Shoot},
    controller::{
        Events, Next, Reconciler,
        runner::{self, Settings},
    },
    error::Explain as _,
};
use serde_json::json;
use tracing::info;

pub use decide::{Obstacle, PROVIDED_IP, Plan, UNINITIALIZED, decide, is_foreign, is_uninitialised};

use crate::nodes;

/// Requeue interval for the instance of a new Node. Shorter than the boot time of a machine, because a new
/// Node usually waits for the boot.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// Rounds of decision and write. Two are needed; the rest covers conflicts with a kubelet that starts.
const ATTEMPTS: usize = 8;

/// The controller.
pub struct CloudNode {
    shoot: Shoot,
    instances: Arc<Instances>,
    events: Events,
    refresh_every: Duration,
}

impl CloudNode {
    /// For the Nodes of this shoot. Addresses are compared with the cloud after `refresh_every` at the
    /// latest.
    #[must_use]
    pub fn new(shoot: Shoot, instances: Arc<Instances>, events: Events, refresh_every: Duration) -> Self {
        Self {
            shoot,
            instances,
            events,
            refresh_every,
        }
    }

    /// Runs until shutdown.
    pub fn run(self, settings: Settings) -> impl Future<Output = ()> + Send {
        let nodes: Api<Node> = self.shoot.cluster_wide();
        let controller = runner::controller(nodes.clone(), watcher::Config::default(), fingerprint);
        runner::run(controller, move |_| nodes.clone(), Arc::new(self), settings)
    }

    /// Decides and writes until no difference is left. Each write returns the Node for the next decision;
    /// after a conflict with a concurrent writer, the Node is read again.
    async fn bring_up_to_date(&self, node: &Node) -> Result<Next> {
        let nodes: Api<Node> = self.shoot.cluster_wide();
        let name = node.name_any();
        let mut current = node.clone();
        for _ in 0..ATTEMPTS {
            let plan = match decide(&current, self.instances.read().await?.as_ref()) {
                Ok(plan) => plan,
                Err(obstacle) => return self.wait(&current, &obstacle).await,
            };
            let written = match plan {
                Plan {
                    addresses: Some(addresses),
                    ..
                } => {
                    let body =
                        json!({"metadata": {"uid": current.uid()}, "status": {"addresses": addresses}});
                    nodes::patch_status(&nodes, &name, body).await
                }
                Plan {
                    initialise: Some(body),
                    ..
                } => {
                    let written = nodes::patch(&nodes, &name, body).await;
                    if let Ok(node) = &written {
                        self.described(node).await;
                    }
                    written
                }
                Plan { .. } => return Ok(Next::After(self.refresh_every)),
            };
            match written {
                Ok(written) => current = written,
                Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(Next::Change),
                Err(kube::Error::Api(status)) if status.is_conflict() => {
                    let read = nodes.get_opt(&name).await;
                    match read.context(format_args!("could not read Node {name}"))? {
                        Some(read) if read.uid() == node.uid() => current = read,
                        // A different Node has taken the name, or the Node is gone: the watch reports the
                        // change.
                        _ => return Ok(Next::Change),
                    }
                }
                Err(error) => return Err(error).context(format_args!("could not write Node {name}")),
            }
        }
        Err(Error::transient(format!(
            "Node {name} was written by others while it was described, {ATTEMPTS} times in a row"
        )))
    }

    async fn described(&self, node: &Node) {
        info!(node = node.name_any(), "the node is described");
        self.events
            .normal(node, "Synced", "The Node has what the cloud knows of it")
            .await;
    }

    async fn wait(&self, node: &Node, obstacle: &Obstacle) -> Result<Next> {
        let name = node.name_any();
        let why = match obstacle {
            Obstacle::AddressUnknown(address) => {
                format!(
                    "the kubelet of Node {name} uses the address {address}, which its instance does not have"
                )
            }
            Obstacle::NoInstance if is_uninitialised(node) => {
                format!("the cloud has no instance for Node {name}, which stays tainted {UNINITIALIZED}")
            }
            // Only cloud-node-lifecycle decides on the removal of the Node.
            Obstacle::NoInstance => return Ok(Next::After(self.refresh_every)),
        };
        self.events.warning(node, "CloudInformationMissing", &why).await;
        Err(Error::not_ready(ASK_AGAIN, why))
    }
}

impl Reconciler<Node> for CloudNode {
    const NAME: &'static str = "cloud-node-controller";

    fn is_responsible(&self, node: &Node) -> bool {
        !is_foreign(node)
    }

    async fn apply(&self, node: Arc<Node>) -> Result<Next> {
        self.bring_up_to_date(&node).await
    }

    async fn cleanup(&self, _: Arc<Node>) -> Result<Next> {
        Ok(Next::Change)
    }
}

/// The input of the decision. The addresses are included, because a kubelet may overwrite the addresses.
fn fingerprint(node: &Node) -> Option<u64> {
    let addresses = node
        .status
        .iter()
        .flat_map(|status| status.addresses.iter().flatten());
    let addresses: Vec<_> = addresses.map(|a| (&a.type_, &a.address)).collect();
    runner::fingerprint((
        nodes::uid(node),
        node.metadata.deletion_timestamp.is_some(),
        is_uninitialised(node),
        nodes::provider_id(node),
        node.annotations().get(PROVIDED_IP),
        addresses,
    ))
}
