//! Decides from facts about the shoot and its seed whether a failover may begin, and which warnings the user
//! gets although the failover may begin. Pure functions.
//!
//! Pools and Nodes name a zone as the account does, and the annotation names the zone by the provider's ID.
//! The sources of the name are, in this order: the status of the Shoot, the zones in the status of the
//! Infrastructure, Nodes with labels for both, and pools where the provider uses the ID as the name. An
//! unknown name is no reason to refuse a failover: the gardenlet must not guess against a user with a sick
//! zone.

use std::collections::BTreeSet;

use api::{gardencore::Shoot, meta::RawExtension};
use placement::isolation::IsolationRefusal;
use serde::Deserialize;

use crate::{name_list::names, node::SeenNode};

/// Label of Nodes with the account's name of the zone.
const ZONE_NAME: &str = "topology.kubernetes.io/zone";

/// The facts of a Node that decide about a failover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ZoneNode {
    /// The provider's ID of the zone.
    pub(crate) zone_id: Option<String>,
    /// The account's name of the zone.
    pub(crate) zone_name: Option<String>,
    /// The Node can run pods.
    pub(crate) is_ready: bool,
}

/// A zone of the shoot, as the Infrastructure reports the zone.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ReportedZone {
    /// The account's name of the zone.
    name: String,
    /// The provider's ID of the zone.
    id: String,
}

impl ReportedZone {
    /// The list `zones` of an Infrastructure's `status.providerStatus`; empty where the provider reports no
    /// zones.
    pub(crate) fn all(provider_status: Option<&RawExtension>) -> Vec<Self> {
        let zones = provider_status.and_then(|status| status.0.get("zones")?.as_array());
        let zones = zones.into_iter().flatten();
        zones
            .filter_map(|zone| serde_json::from_value(zone.clone()).ok())
            .collect()
    }
}

/// The facts that are read before a failover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ZoneFacts {
    /// The shoot's Nodes, or the reason why the Nodes are unknown. `None` for a hibernated shoot.
    pub(crate) nodes: Option<Result<Vec<ZoneNode>, String>>,
    /// Pods of the shoot's etcd and API server in its seed, and the zones of their Nodes by their provider's
    /// IDs.
    pub(crate) control_plane: Vec<(String, Option<String>)>,
    /// Zones that the shoot's Infrastructure reports.
    pub(crate) zones: Vec<ReportedZone>,
    /// The Seed that is this shoot, if the Seed hosts shoots.
    pub(crate) hosts_as: Option<String>,
}

impl ZoneFacts {
    /// The account's name of the zone.
    pub(crate) fn zone_name<'a>(&'a self, shoot: &'a Shoot, zone: &str) -> Option<&'a str> {
        let nodes = self.nodes.as_ref().and_then(|nodes| nodes.as_ref().ok());
        zone_name(shoot, zone, &self.zones, nodes.map_or(&[], Vec::as_slice))
    }
}

/// The decision about a failover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FailoverVerdict {
    /// The failover must not begin.
    pub(crate) refusal: Option<IsolationRefusal>,
    /// Sentences for the user who requested the failover.
    pub(crate) warnings: Vec<String>,
}

impl ZoneNode {
    /// `labels`: the labels of Nodes with the ID of a zone.
    pub(crate) fn from_node(node: &SeenNode, labels: &[String]) -> Self {
        Self {
            zone_id: labels.iter().find_map(|label| node.label(label)).cloned(),
            zone_name: node.label(ZONE_NAME).cloned(),
            is_ready: node.is_ready(),
        }
    }

    /// Whether the Node is in this zone; `None` if the labels do not tell.
    fn is_in(&self, zone: &str, name: Option<&str>) -> Option<bool> {
        let by_id = self.zone_id.as_ref().map(|id| id == zone);
        by_id.or_else(|| Some(self.zone_name.as_deref()? == name?))
    }
}

/// The account's name of the zone, if known.
fn zone_name<'a>(
    shoot: &'a Shoot,
    zone: &str,
    reported: &'a [ReportedZone],
    nodes: &'a [ZoneNode],
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

/// Whether the failover of this zone may begin. `name`: the account's name of the zone.
pub(crate) fn judge(zone: &str, name: Option<&str>, facts: &ZoneFacts) -> FailoverVerdict {
    let mut warnings = Vec::new();
    let refusal = refuse_seed(facts.hosts_as.as_deref())
        .or_else(|| refuse_unknown_zone(zone, &facts.zones))
        .or_else(|| refuse_control_plane_in_zone(zone, &facts.control_plane, &mut warnings))
        .or_else(|| refuse_without_other_nodes(zone, name, facts.nodes.as_ref()?, &mut warnings));
    FailoverVerdict { refusal, warnings }
}

fn refuse_seed(seed: Option<&str>) -> Option<IsolationRefusal> {
    let seed = seed?;
    Some(IsolationRefusal {
        reason: "IsSeed",
        message: format!(
            "The shoot is Seed {seed}, which hosts shoots: their control planes would lose their volumes. Move them to another seed first."
        ),
    })
}

fn refuse_unknown_zone(zone: &str, zones: &[ReportedZone]) -> Option<IsolationRefusal> {
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

fn refuse_control_plane_in_zone(
    zone: &str,
    pods: &[(String, Option<String>)],
    warnings: &mut Vec<String>,
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
        warnings.push(format!(
            "Whether the shoot's control plane runs in zone {zone} is not known: the Nodes of its seed have no label with the ID of \
             their zone (pods {}). Look at it yourself.",
            names(&unknown)
        ));
    }
    None
}

fn refuse_without_other_nodes(
    zone: &str,
    name: Option<&str>,
    nodes: &Result<Vec<ZoneNode>, String>,
    warnings: &mut Vec<String>,
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
    let is_elsewhere = |node: &&&ZoneNode| node.is_in(zone, name) == Some(false);
    let unknown: Vec<_> = ready
        .iter()
        .filter(|node| node.is_in(zone, name).is_none())
        .collect();
    // At most one of two different names is the name of this zone.
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
    warnings.push(format!(
        "Whether a Node outside of zone {zone} is Ready is not known: all that are Ready are in one zone, and nothing says whether it is \
         this one."
    ));
    None
}

#[cfg(test)]
#[path = "judgement_tests.rs"]
mod tests;
