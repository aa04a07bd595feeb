//! Whether a failover may begin, by what was seen of the shoot and of its seed, and what is told although it
//! may. Pure.
//!
//! Pools and Nodes name a zone as the account does, the annotation by the provider's ID. Which name that is
//! follows from what was told of the zone before, from the zones that the Infrastructure reports, from Nodes
//! that have labels for both, or from pools, where a provider calls a zone by its ID. Where nothing says so
//! nothing is refused for it: a sick zone is left by a guess of nobody.

use std::collections::BTreeSet;

use api::{gardencore::Shoot, meta::RawExtension};
use placement::isolation::IsolationRefusal;
use serde::Deserialize;

use crate::{node::SeenNode, words::names};

/// The label by which Nodes say what the account calls their zone.
const ZONE_NAME: &str = "topology.kubernetes.io/zone";

/// A Node, as far as it counts here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NodeSeen {
    /// The provider's ID of its zone.
    pub(super) zone_id: Option<String>,
    /// The account's name of it.
    pub(super) zone_name: Option<String>,
    /// It can run pods.
    pub(super) is_ready: bool,
}

/// A zone of the shoot, as the Infrastructure reports the zone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(super) struct ReportedZone {
    /// The account's name of the zone.
    name: String,
    /// The provider's ID of the zone.
    id: String,
}

impl ReportedZone {
    /// The list `zones` of an Infrastructure's `status.providerStatus`; empty where the provider reports no
    /// zones.
    pub(super) fn all(provider_status: Option<&RawExtension>) -> Vec<Self> {
        let zones = provider_status.and_then(|status| status.0.get("zones")?.as_array());
        let zones = zones.into_iter().flatten();
        zones
            .filter_map(|zone| serde_json::from_value(zone.clone()).ok())
            .collect()
    }
}

/// What is looked at before anything changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct World {
    /// The shoot's Nodes; nothing of a shoot that sleeps, which has none. Why they are not known otherwise.
    pub(super) nodes: Option<Result<Vec<NodeSeen>, String>>,
    /// Pods of the shoot's etcd and API server in its seed, and the zones of their Nodes by their provider's
    /// IDs.
    pub(super) control_plane: Vec<(String, Option<String>)>,
    /// Zones that the shoot's Infrastructure reports.
    pub(super) zones: Vec<ReportedZone>,
    /// The Seed that the shoot is, if that hosts shoots.
    pub(super) hosts_as: Option<String>,
}

impl World {
    /// What the account calls the zone.
    pub(super) fn name<'a>(&'a self, shoot: &'a Shoot, zone: &str) -> Option<&'a str> {
        let nodes = self.nodes.as_ref().and_then(|nodes| nodes.as_ref().ok());
        name_of(shoot, zone, &self.zones, nodes.map_or(&[], Vec::as_slice))
    }
}

/// What comes of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The failover must not begin.
    pub(super) refusal: Option<IsolationRefusal>,
    /// Sentences for whoever asked for it.
    pub(super) told: Vec<String>,
}

impl NodeSeen {
    /// `labels`: those of Nodes that have the ID of a zone.
    pub(super) fn from_node(node: &SeenNode, labels: &[String]) -> Self {
        Self {
            zone_id: labels.iter().find_map(|label| node.label(label)).cloned(),
            zone_name: node.label(ZONE_NAME).cloned(),
            is_ready: node.is_ready(),
        }
    }

    /// Whether it is in this zone, as far as it says so.
    fn is_in(&self, zone: &str, name: Option<&str>) -> Option<bool> {
        let by_id = self.zone_id.as_ref().map(|id| id == zone);
        by_id.or_else(|| Some(self.zone_name.as_deref()? == name?))
    }
}

/// What the account calls the zone, as far as anything says so.
fn name_of<'a>(
    shoot: &'a Shoot,
    zone: &str,
    reported: &'a [ReportedZone],
    nodes: &'a [NodeSeen],
) -> Option<&'a str> {
    let recorded = shoot
        .status
        .as_ref()
        .and_then(|status| status.zone_isolation.as_ref())
        .filter(|recorded| recorded.isolated_zone_id == zone)
        .and_then(|recorded| recorded.isolated_zone_code.as_deref());
    let by_infrastructure = || {
        let mut reported = reported.iter();
        Some(reported.find(|reported| reported.id == zone)?.name.as_str())
    };
    let by_node = || {
        let there = nodes.iter().find(|node| node.zone_id.as_deref() == Some(zone))?;
        there.zone_name.as_deref()
    };
    let by_pool = || {
        let mut zones = shoot.spec.provider.workers.iter().flat_map(|pool| &pool.zones);
        zones.find(|name| *name == zone).map(String::as_str)
    };
    recorded
        .or_else(by_infrastructure)
        .or_else(by_node)
        .or_else(by_pool)
}

/// Whether the failover of this zone may begin. `name`: what the account calls it.
pub(super) fn judge(zone: &str, name: Option<&str>, world: &World) -> Verdict {
    let mut told = Vec::new();
    let refusal = of_a_seed(world.hosts_as.as_deref())
        .or_else(|| of_reported_zones(zone, &world.zones))
        .or_else(|| of_control_plane(zone, &world.control_plane, &mut told))
        .or_else(|| of_nodes(zone, name, world.nodes.as_ref()?, &mut told));
    Verdict { refusal, told }
}

fn of_a_seed(seed: Option<&str>) -> Option<IsolationRefusal> {
    let seed = seed?;
    Some(IsolationRefusal {
        reason: "IsSeed",
        message: format!(
            "The shoot is Seed {seed}, which hosts shoots: their control planes would lose their volumes. Move them to another seed first."
        ),
    })
}

fn of_reported_zones(zone: &str, zones: &[ReportedZone]) -> Option<IsolationRefusal> {
    if zones.is_empty() || zones.iter().any(|reported| reported.id == zone) {
        return None;
    }
    let zones: Vec<_> = zones
        .iter()
        .map(|zone| format!("{} ({})", zone.id, zone.name))
        .collect();
    Some(IsolationRefusal {
        reason: "ZoneUnknown",
        message: format!(
            "No zone of the shoot has the ID {zone}. The Infrastructure reports the zones {}: remove the annotation, then name one of \
             these by the ID.",
            names(&zones)
        ),
    })
}

fn of_control_plane(
    zone: &str,
    pods: &[(String, Option<String>)],
    told: &mut Vec<String>,
) -> Option<IsolationRefusal> {
    let of = |is_meant: &dyn Fn(Option<&str>) -> bool| -> Vec<&str> {
        let meant = pods.iter().filter(|(_, id)| is_meant(id.as_deref()));
        meant.map(|(pod, _)| pod.as_str()).collect()
    };
    let there = of(&|id| id == Some(zone));
    if !there.is_empty() {
        return Some(IsolationRefusal {
            reason: "ControlPlaneInZone",
            message: format!(
                "The shoot's control plane runs in zone {zone} of its seed (pods {}): move the shoot to another seed, or these pods to \
                 another zone, before its machines depend on them.",
                names(&there)
            ),
        });
    }
    let unknown = of(&|id| id.is_none());
    if !unknown.is_empty() {
        told.push(format!(
            "Whether the shoot's control plane runs in zone {zone} is not known: the Nodes of its seed have no label with the ID of \
             their zone (pods {}). Look at it yourself.",
            names(&unknown)
        ));
    }
    None
}

fn of_nodes(
    zone: &str,
    name: Option<&str>,
    nodes: &Result<Vec<NodeSeen>, String>,
    told: &mut Vec<String>,
) -> Option<IsolationRefusal> {
    let nodes = match nodes {
        Ok(nodes) => nodes,
        Err(why) => {
            return Some(IsolationRefusal {
                reason: "NodesUnknown",
                message: format!(
                    "The gardenlet cannot find out whether a Node outside of zone {zone} is Ready: {}. The failover begins when the \
                     shoot's API answers and reports such a Node.",
                    why.trim_end_matches('.')
                ),
            });
        }
    };
    let ready: Vec<_> = nodes.iter().filter(|node| node.is_ready).collect();
    let is_elsewhere = |node: &&&NodeSeen| node.is_in(zone, name) == Some(false);
    let unknown: Vec<_> = ready
        .iter()
        .filter(|node| node.is_in(zone, name).is_none())
        .collect();
    // Of two zones one at most is this one.
    let names: BTreeSet<_> = unknown
        .iter()
        .filter_map(|node| node.zone_name.as_deref())
        .collect();
    if ready.iter().any(|node| is_elsewhere(&node)) || names.len() > 1 {
        return None;
    }
    if unknown.is_empty() {
        return Some(IsolationRefusal {
            reason: "NoNodeElsewhere",
            message: format!(
                "No Node outside of zone {zone} is Ready, and what runs in the zone would have nowhere to go: bring Nodes in another \
                 zone up first."
            ),
        });
    }
    told.push(format!(
        "Whether a Node outside of zone {zone} is Ready is not known: all that are Ready are in one zone, and nothing says whether it is \
         this one."
    ));
    None
}

#[cfg(test)]
#[path = "zone_judgement_tests.rs"]
mod tests;
