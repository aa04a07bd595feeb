//! The links that must be closed: pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use cloud_local::isolation::{Machine, Order};

/// The link of the host that leads to an address. Links are named by index.
pub type Ways = BTreeMap<IpAddr, u32>;

/// The wanted state of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The links that must drop all packets.
    pub shut: BTreeSet<u32>,
    /// Clusters with machines that cannot be shut off, with the reason.
    pub unknown: BTreeMap<String, String>,
}

/// The plan for the orders, the machines of this host by name, and the links to the machines.
#[must_use]
pub fn plan<'a>(
    orders: impl Iterator<Item = &'a Order>,
    machines: &BTreeMap<String, Machine>,
    ways: &Ways,
) -> Plan {
    let mut plan = Plan::default();
    for order in orders.filter(|order| order.shut) {
        let shut_off = |machine: &Machine| machine.cluster == order.cluster && machine.zone == order.zone;
        for (name, machine) in machines.iter().filter(|(_, machine)| shut_off(machine)) {
            let links: BTreeSet<_> = machine.addresses.iter().filter_map(|ip| ways.get(ip)).collect();
            // A terminating machine may have lost the link. A machine without an address has no link yet.
            if links.is_empty() && !machine.leaves && !machine.addresses.is_empty() {
                plan.unknown.insert(
                    order.cluster.clone(),
                    format!(
                        "no link of this host leads to machine {name} alone: the cloud's network has to have a route of \
                         its own to each pod, as the plugin ptp makes them"
                    ),
                );
            }
            plan.shut.extend(links);
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use k8s_openapi::api::core::v1::ConfigMap;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn order(cluster: &str, zone: &str, wanted: &str) -> Order {
        let object: ConfigMap = serde_json::from_value(json!({
            "metadata": {"name": format!("isolation.{cluster}"),
                "labels": {"local.provider.extensions.gardener.cloud/cluster": cluster}},
            "data": {"zone": zone, "since": "2026-01-01T00:00:00Z", "wanted": wanted, "revision": "1"},
        }))
        .unwrap();
        Order::from_config_map(&object).unwrap()
    }

    fn machine(cluster: &str, zone: &str, addresses: &[&str]) -> Machine {
        Machine {
            cluster: cluster.into(),
            zone: zone.into(),
            addresses: addresses.iter().map(|ip| ip.parse().unwrap()).collect(),
            leaves: false,
        }
    }

    fn machines() -> BTreeMap<String, Machine> {
        [
            ("one", machine("web", "a", &["10.0.0.1", "fd00::1"])),
            ("two", machine("web", "a", &["10.0.0.2"])),
            ("elsewhere", machine("web", "b", &["10.0.0.3"])),
            ("other", machine("shop", "a", &["10.0.0.4"])),
            ("starting", machine("web", "a", &[])),
        ]
        .map(|(name, machine)| (name.to_owned(), machine))
        .into()
    }

    fn ways() -> Ways {
        [
            ("10.0.0.1", 11),
            ("fd00::1", 11),
            ("10.0.0.2", 12),
            ("10.0.0.3", 13),
            ("10.0.0.4", 14),
            ("10.0.0.9", 19),
        ]
        .map(|(ip, link)| (ip.parse().unwrap(), link))
        .into()
    }

    #[rstest]
    #[case::nothing(&[], &[])]
    #[case::one_zone_of_one_cluster(&[order("web", "a", "closed")], &[11, 12])]
    #[case::another_zone(&[order("web", "b", "closed")], &[13])]
    #[case::opening(&[order("web", "a", "open")], &[])]
    #[case::two_clusters(&[order("web", "b", "closed"), order("shop", "a", "closed")], &[13, 14])]
    #[case::nobody_there(&[order("web", "c", "closed"), order("mail", "a", "closed")], &[])]
    fn the_links_of_the_machines_in_the_zone_are_shut(#[case] orders: &[Order], #[case] expected: &[u32]) {
        let plan = plan(orders.iter(), &machines(), &ways());
        assert_eq!(plan.shut, expected.iter().copied().collect());
        assert!(plan.unknown.is_empty(), "{plan:?}");
    }

    #[test]
    fn a_machine_without_a_link_of_its_own_is_told_unless_it_leaves() {
        let (orders, mut ways) = ([order("web", "a", "closed")], ways());
        ways.remove(&"10.0.0.2".parse().unwrap());
        let told = plan(orders.iter(), &machines(), &ways);
        assert_eq!(told.shut, [11].into(), "the others are shut all the same");
        assert!(told.unknown["web"].contains("machine two"), "{told:?}");
        let mut leaving = machines();
        leaving.get_mut("two").unwrap().leaves = true;
        assert!(plan(orders.iter(), &leaving, &ways).unknown.is_empty());
    }
}
