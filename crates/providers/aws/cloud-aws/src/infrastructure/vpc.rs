//! The VPC of a shoot. EC2 creates a second VPC without a conflict, so that the VPC in use is chosen by all
//! parts that name a VPC.

use std::{cmp::Reverse, collections::BTreeMap};

use super::found::NetworkParts;
use crate::{Tagged, network::Vpc};

/// The VPC to use, and VPCs that no part needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    /// The id of the VPC. EC2 may not list this VPC: a part of the shoot names the VPC, or the id is known.
    pub id: Option<String>,
    /// VPCs of the same name in which EC2 shows no part of the shoot.
    pub unused: Vec<String>,
}

/// Chooses the VPC that is known, else the VPC with most parts of the shoot, else the lowest id.
pub(super) fn choose(found: &NetworkParts, name: &str, known: Option<&str>) -> Chosen {
    let mut parts: BTreeMap<&str, usize> = BTreeMap::new();
    let named = found.vpcs.iter().filter(|vpc| vpc.name() == name);
    for Vpc { vpc_id, .. } in named.clone() {
        parts.insert(vpc_id, 0);
    }
    let subnets = found.subnets.iter().map(|subnet| &subnet.vpc_id);
    let groups = found.groups.iter().map(|group| &group.vpc_id);
    let tables = found.tables.iter().map(|table| &table.vpc_id);
    let attachments = found
        .gateways
        .iter()
        .flat_map(|gateway| gateway.attachments.iter());
    let attachments = attachments.map(|attachment| &attachment.vpc_id);
    for id in subnets.chain(groups).chain(tables).chain(attachments) {
        if !id.is_empty() {
            *parts.entry(id).or_default() += 1;
        }
    }
    let most = parts.iter().min_by_key(|(id, count)| (Reverse(**count), **id));
    let id = known.or(most.map(|(id, _)| *id)).map(str::to_owned);
    let is_unused = |vpc: &&Vpc| id.as_deref() != Some(vpc.id()) && parts.get(vpc.id()) == Some(&0);
    Chosen {
        unused: named.filter(is_unused).map(|vpc| vpc.vpc_id.clone()).collect(),
        id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Tag, network::Subnet};

    fn listing(vpcs: &[&str], subnets_in: &[&str]) -> NetworkParts {
        NetworkParts {
            vpcs: vpcs
                .iter()
                .map(|id| Vpc {
                    vpc_id: (*id).into(),
                    tags: vec![Tag::new("Name", "shoot")].into(),
                    ..Vpc::default()
                })
                .collect(),
            subnets: subnets_in
                .iter()
                .map(|vpc| Subnet {
                    vpc_id: (*vpc).into(),
                    ..Subnet::default()
                })
                .collect(),
            ..NetworkParts::default()
        }
    }

    #[test]
    fn of_two_vpcs_everybody_chooses_the_same_also_while_one_is_hidden() {
        for (vpcs, subnets_in, known, id, unused) in [
            (&[][..], &[][..], None, None, &[][..]),
            (&["vpc-2", "vpc-1"], &[], None, Some("vpc-1"), &["vpc-2"]),
            (&["vpc-2", "vpc-1"], &["vpc-2"], None, Some("vpc-2"), &["vpc-1"]),
            (&["vpc-1", "vpc-2"], &["vpc-2"], Some("vpc-1"), Some("vpc-1"), &[]),
            // The VPC with the subnets is hidden, or the VPC that is known.
            (&["vpc-1"], &["vpc-2", "vpc-2"], None, Some("vpc-2"), &["vpc-1"]),
            (&["vpc-1"], &[], Some("vpc-2"), Some("vpc-2"), &["vpc-1"]),
            (&["vpc-1", "vpc-2"], &["vpc-1", "vpc-2"], None, Some("vpc-1"), &[]),
        ] {
            let chosen = choose(&listing(vpcs, subnets_in), "shoot", known);
            assert_eq!(chosen.id.as_deref(), id, "{vpcs:?} {subnets_in:?} {known:?}");
            assert_eq!(chosen.unused, unused, "{vpcs:?} {subnets_in:?} {known:?}");
        }
    }
}
