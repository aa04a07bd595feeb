//! The properties of a shoot's machines that a move must not change, read from the seed and from the shoot.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, ensure};
use api::machine::Machine;
use k8s_openapi::api::{
    coordination::v1::Lease,
    core::v1::{Node, Pod},
};
use kube::{Api, Client, ResourceExt, api::ListParams};

use super::instances;
use crate::{landscape::Landscape, proof, watched};

/// Longer than a kubelet takes between two renewals.
const RENEWED_WITHIN: Duration = Duration::from_secs(120);
/// Namespace of the kubelets' Leases.
const LEASES: &str = "kube-node-lease";
/// Label of a node's zone.
const ZONE: &str = "topology.kubernetes.io/zone";

/// The recorded state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fleet {
    /// By name: the provider's id and the Node.
    pub machines: BTreeMap<String, [Option<String>; 2]>,
    /// By name: uid, provider's id, zone.
    pub nodes: BTreeMap<String, [String; 3]>,
    /// By namespace and name: uid, node, start, restarts.
    pub pods: BTreeMap<String, [String; 4]>,
}

impl Fleet {
    /// Reads the state. Only running pods are recorded: a starting pod may continue to start, and a pod on a
    /// removed node is garbage-collected.
    pub async fn read(seed: &Client, technical_id: &str, shoot: &Client) -> Result<Self> {
        let machines: Api<Machine> = Api::namespaced(seed.clone(), technical_id);
        let machines = machines.list(&ListParams::default()).await?.items.into_iter();
        let nodes = Api::<Node>::all(shoot.clone())
            .list(&ListParams::default())
            .await?;
        let pods = Api::<Pod>::all(shoot.clone())
            .list(&ListParams::default())
            .await?;
        let nodes: BTreeMap<_, _> = nodes
            .items
            .iter()
            .map(|node| (node.name_any(), of_node(node)))
            .collect();
        let is_on_node = |pod: &[String; 4]| nodes.contains_key(&pod[1]);
        let pods = pods.items.iter().filter_map(of_pod);
        Ok(Self {
            pods: pods.filter(|(_, pod)| is_on_node(pod)).collect(),
            machines: machines
                .map(|machine| {
                    let node = machine.labels().get("node").cloned();
                    (machine.name_any(), [machine.spec.provider_id.clone(), node])
                })
                .collect(),
            nodes,
        })
    }

    /// The zones of the nodes, in order.
    #[must_use]
    pub fn zones(&self) -> Vec<&str> {
        let mut zones: Vec<_> = self.nodes.values().map(|node| node[2].as_str()).collect();
        zones.sort_unstable();
        zones
    }

    /// The differences to `after`, a sentence each. New objects are no difference, except for machines and
    /// nodes.
    #[must_use]
    pub fn differences(&self, after: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if self.machines != after.machines {
            found.push(format!(
                "machines: {:?} became {:?}",
                self.machines, after.machines
            ));
        }
        if self.nodes != after.nodes {
            found.push(format!("nodes: {:?} became {:?}", self.nodes, after.nodes));
        }
        found.extend(self.other_pods(after));
        found
    }

    /// The same with only the pods on Nodes of `other`.
    #[must_use]
    pub fn on_nodes_of(mut self, other: &Self) -> Self {
        self.pods
            .retain(|_, [_, node, ..]| other.nodes.contains_key(node));
        self
    }

    /// Pods that are not the same in `after`, a sentence each.
    #[must_use]
    pub fn other_pods(&self, after: &Self) -> Vec<String> {
        let became = |(name, pod)| (name, pod, after.pods.get(name));
        let others = self
            .pods
            .iter()
            .map(became)
            .filter(|(_, pod, now)| *now != Some(*pod));
        others
            .map(|(name, pod, now)| format!("pod {name}: {pod:?} became {now:?}"))
            .collect()
    }

    /// Waits until the Lease of each node is renewed from now on.
    pub async fn leases_are_renewed(&self, shoot: &Client) -> Result<()> {
        let leases: Api<Lease> = Api::namespaced(shoot.clone(), LEASES);
        for node in self.nodes.keys() {
            let renewed = |lease: &Lease| lease.spec.as_ref().and_then(|spec| spec.renew_time.clone());
            let before = renewed(&leases.get(node).await?);
            let again = |lease: Option<&Lease>| lease.is_some_and(|lease| renewed(lease) != before);
            watched::until(&leases, node, RENEWED_WITHIN, again)
                .await
                .with_context(|| format!("the Lease of {node} is not renewed"))?;
        }
        Ok(())
    }

    /// Waits until the shoot has a node that is not in this fleet.
    pub async fn joined_by_another(&self, shoot: &Client, within: Duration) -> Result<()> {
        let nodes: Api<Node> = Api::all(shoot.clone());
        let missing = proof::until_nothing(within, || async {
            let now = nodes.list(&ListParams::default()).await?.items;
            let joined = now.iter().any(|node| !self.nodes.contains_key(&node.name_any()));
            Ok(if joined {
                vec![]
            } else {
                vec!["another node".to_owned()]
            })
        })
        .await?;
        ensure!(missing.is_empty(), "no other node joined within {within:?}");
        Ok(())
    }

    /// Waits until as many new nodes are ready, and no node of this fleet is left.
    pub async fn replaced(&self, shoot: &Client, within: Duration) -> Result<()> {
        let nodes: Api<Node> = Api::all(shoot.clone());
        let left = proof::until_nothing(within, || async {
            let now = nodes.list(&ListParams::default()).await?.items;
            let wrong = |node: &&Node| self.nodes.contains_key(&node.name_any()) || !is_ready(node);
            let mut left: Vec<_> = now.iter().filter(wrong).map(ResourceExt::name_any).collect();
            if now.len() != self.nodes.len() {
                left.push(format!("{} nodes, and not {}", now.len(), self.nodes.len()));
            }
            Ok(left)
        })
        .await?;
        ensure!(left.is_empty(), "not replaced after {within:?}: {left:?}");
        Ok(())
    }

    /// Fails if the cloud still has an instance of a cluster.
    pub async fn nothing_left(landscape: &Landscape, technical_id: &str) -> Result<()> {
        let cloud: Api<Pod> = Api::namespaced(landscape.cloud().await?, "cloud");
        let label = instances::selector(technical_id);
        let left = proof::until_nothing(Duration::from_secs(60), || async {
            let pods = cloud.list(&ListParams::default().labels(&label)).await?;
            Ok(pods.items.iter().map(ResourceExt::name_any).collect())
        })
        .await?;
        ensure!(left.is_empty(), "left in the cloud: {left:?}");
        Ok(())
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node
        .status
        .iter()
        .filter_map(|status| status.conditions.as_ref())
        .flatten();
    conditions
        .into_iter()
        .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn of_node(node: &Node) -> [String; 3] {
    let id = node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
    [
        node.uid().unwrap_or_default(),
        id.unwrap_or_default(),
        node.labels().get(ZONE).cloned().unwrap_or_default(),
    ]
}

fn of_pod(pod: &Pod) -> Option<(String, [String; 4])> {
    let status = pod.status.as_ref()?;
    if status.phase.as_deref() != Some("Running") || pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    let containers = status.container_statuses.iter().flatten();
    let restarts: i32 = containers.map(|container| container.restart_count).sum();
    let node = pod.spec.as_ref()?.node_name.clone().unwrap_or_default();
    let start = status.start_time.as_ref().map(|time| time.0.to_string());
    let name = format!("{}/{}", pod.namespace().unwrap_or_default(), pod.name_any());
    Some((
        name,
        [
            pod.uid().unwrap_or_default(),
            node,
            start.unwrap_or_default(),
            restarts.to_string(),
        ],
    ))
}
