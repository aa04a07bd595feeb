//! The provider configuration of an Infrastructure for AWS. The names are the names of Gardener's provider
//! for AWS. An unknown setting is refused, because a user who relies on the setting would be misled.

use std::collections::{BTreeMap, BTreeSet};

use api::meta::ErrorCode;
use ipnet::Ipv4Net;
use runtime::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::zones::Zone;

/// `spec.providerConfig`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct InfrastructureConfig {
    /// Group and version.
    pub api_version: String,
    /// `InfrastructureConfig`.
    pub kind: String,
    /// Networks.
    pub networks: Networks,
}

/// Networks that are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Networks {
    /// That of the shoot.
    pub vpc: Vpc,
    /// The networks by zone.
    pub zones: Vec<ZoneNetworks>,
}

/// The VPC.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Vpc {
    /// The IP range in CIDR notation.
    pub cidr: String,
}

/// The subnets of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ZoneNetworks {
    /// The name of the zone in the account.
    pub name: String,
    /// Range for machines.
    pub workers: String,
    /// Range for the NAT gateway, and later for load balancers.
    pub public: String,
}

/// The desired network, validated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Range of the VPC.
    pub range: Ipv4Net,
    /// Zones by name: the ranges for machines and for the NAT gateway.
    pub zones: BTreeMap<String, [Ipv4Net; 2]>,
    /// The ID of the isolated zone. No object is made in this zone.
    pub isolated_zone_id: Option<String>,
}

impl Plan {
    /// Understands a configuration.
    ///
    /// # Errors
    /// The configuration names no zone, or a zone twice; a range is invalid, lies outside of the VPC, or
    /// overlaps a different range.
    pub fn from_config(config: &InfrastructureConfig) -> Result<Self> {
        let range = parse(&config.networks.vpc.cidr, "networks.vpc.cidr")?;
        let mut zones = BTreeMap::new();
        for zone in &config.networks.zones {
            let name = &zone.name;
            let ranges = [
                parse(&zone.workers, &format!("workers of zone {name:?}"))?,
                parse(&zone.public, &format!("public of zone {name:?}"))?,
            ];
            if name.is_empty() || zones.insert(name.clone(), ranges).is_some() {
                return Err(problem(format!(
                    "networks.zones names {name:?} twice, or a zone without a name: name each once"
                )));
            }
        }
        if zones.is_empty() {
            return Err(problem(
                "networks.zones is empty: name the zones of the shoot with their ranges",
            ));
        }
        let all: Vec<Ipv4Net> = zones.values().flatten().copied().collect();
        if let Some(outside) = all.iter().find(|part| !range.contains(*part)) {
            return Err(problem(format!(
                "{outside} lies outside of networks.vpc.cidr {range}: take a part of it"
            )));
        }
        let meets = |one: &Ipv4Net, other: &Ipv4Net| one.contains(other) || other.contains(one);
        for (index, one) in all.iter().enumerate() {
            if let Some(other) = all.iter().skip(index + 1).find(|other| meets(one, other)) {
                return Err(problem(format!(
                    "{one} and {other} overlap: give each subnet a range of its own"
                )));
            }
        }
        Ok(Self {
            range,
            zones,
            isolated_zone_id: None,
        })
    }

    /// The same plan while a zone is isolated, by the ID of the zone.
    #[must_use]
    pub fn isolating(self, zone_id: Option<&str>) -> Self {
        Self {
            isolated_zone_id: zone_id.map(str::to_owned),
            ..self
        }
    }

    /// Whether the zone with this name is the isolated zone.
    pub(super) fn isolates(&self, name: &str, zones: &[Zone]) -> bool {
        let mut of_name = zones.iter().filter(|zone| zone.name == name);
        self.isolated_zone_id.is_some()
            && of_name.any(|zone| Some(&zone.id) == self.isolated_zone_id.as_ref())
    }
}

fn parse(text: &str, field: &str) -> Result<Ipv4Net> {
    let range: Ipv4Net = text.parse().map_err(|_| {
        problem(format!(
            "{field} is {text:?}, which is no range of IPv4 addresses: correct it"
        ))
    })?;
    if range.trunc() != range || !(16..=28).contains(&range.prefix_len()) {
        return Err(problem(format!(
            "{field} is {text:?}: AWS takes ranges from /16 to /28, written by their first address"
        )));
    }
    Ok(range)
}

/// Of the configuration.
pub(super) fn problem(message: impl std::fmt::Display) -> Error {
    Error::config(
        ErrorCode::ErrConfigurationProblem,
        format!("the infrastructure's configuration: {message}"),
    )
}

/// `status.providerStatus`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InfrastructureStatus {
    /// Group and version.
    pub api_version: String,
    /// `InfrastructureStatus`.
    pub kind: String,
    /// The network.
    pub vpc: VpcStatus,
    /// The zones of the shoot, with the IDs that are the same in every account.
    pub zones: Vec<Zone>,
    /// The account with the network. Keys of a different account do not prove the absence of an object of the
    /// shoot.
    #[serde(rename = "accountID", skip_serializing_if = "Option::is_none")]
    pub account_id: Option<String>,
}

/// The network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct VpcStatus {
    /// The id of the VPC.
    pub id: String,
    /// The subnets of the VPC.
    pub subnets: Vec<SubnetStatus>,
    /// The security groups of the VPC.
    pub security_groups: Vec<GroupStatus>,
}

/// A subnet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SubnetStatus {
    /// The id of the subnet.
    pub id: String,
    /// `nodes` or `public`.
    pub purpose: String,
    /// The name of the subnet's zone in the account.
    pub zone: String,
}

/// A security group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct GroupStatus {
    /// The id of the security group.
    pub id: String,
    /// `nodes`.
    pub purpose: String,
}

impl InfrastructureStatus {
    /// The subnet for the machines of a zone.
    #[must_use]
    pub fn subnet_for_nodes(&self, zone: &str) -> Option<&str> {
        let mut of_zone = self.vpc.subnets.iter();
        of_zone
            .find(|subnet| subnet.zone == zone && subnet.purpose == NODES)
            .map(|subnet| subnet.id.as_str())
    }

    /// The security groups of machines.
    #[must_use]
    pub fn groups_of_nodes(&self) -> Vec<String> {
        let groups = self.vpc.security_groups.iter();
        let of_nodes = groups.filter(|group| group.purpose == NODES);
        of_nodes.map(|group| group.id.clone()).collect()
    }

    /// The subnets of a zone.
    #[must_use]
    pub fn subnets_of(&self, zone: &str) -> BTreeSet<String> {
        let of_zone = self.vpc.subnets.iter().filter(|subnet| subnet.zone == zone);
        of_zone.map(|subnet| subnet.id.clone()).collect()
    }
}

/// Purpose of subnets and groups for machines.
pub(super) const NODES: &str = "nodes";
#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn plan(vpc: &str, zones: &Value) -> Result<Plan> {
        let config =
            json!({"kind": "InfrastructureConfig", "networks": {"vpc": {"cidr": vpc}, "zones": zones}});
        Plan::from_config(&serde_json::from_value(config).unwrap())
    }

    #[test]
    fn zones_are_in_order() {
        let zones = json!([
            {"name": "b", "workers": "10.0.1.0/24", "public": "10.0.3.0/24"},
            {"name": "a", "workers": "10.0.0.0/24", "public": "10.0.2.0/24"},
        ]);
        let plan = plan("10.0.0.0/16", &zones).unwrap();
        assert_eq!(plan.zones.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(plan.range.to_string(), "10.0.0.0/16");
    }

    #[test]
    fn what_cannot_be_is_told() {
        let zone = |name, workers, public| json!({"name": name, "workers": workers, "public": public});
        let good = zone("a", "10.0.0.0/24", "10.0.1.0/24");
        for (vpc, zones, told) in [
            ("10.0.0.0/16", json!([]), "is empty"),
            ("", json!([good]), "networks.vpc.cidr"),
            ("10.0.0.0/8", json!([good]), "from /16 to /28"),
            ("10.0.0.1/16", json!([good]), "first address"),
            ("10.1.0.0/16", json!([good]), "outside"),
            ("10.0.0.0/16", json!([good, good]), "twice"),
            (
                "10.0.0.0/16",
                json!([zone("", "10.0.0.0/24", "10.0.1.0/24")]),
                "without a name",
            ),
            (
                "10.0.0.0/16",
                json!([zone("a", "10.0.0.0/24", "10.0.0.0/25")]),
                "overlap",
            ),
            (
                "10.0.0.0/16",
                json!([zone("a", "x", "10.0.0.0/25")]),
                "workers of zone \"a\"",
            ),
        ] {
            let error = plan(vpc, &zones).unwrap_err();
            assert_eq!(error.codes(), [ErrorCode::ErrConfigurationProblem]);
            assert!(error.to_string().contains(told), "{error}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused_by_its_name() {
        let given = json!({"networks": {"vpc": {"id": "vpc-1"}}});
        let error = serde_json::from_value::<InfrastructureConfig>(given).unwrap_err();
        assert!(error.to_string().contains("unknown field `id`"), "{error}");
    }
}
