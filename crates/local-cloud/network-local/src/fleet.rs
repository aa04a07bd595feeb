//! The machines of the shoot, derived from Nodes.

use std::{collections::BTreeMap, net::Ipv4Addr};

use ipnet::Ipv4Net;
use k8s_openapi::api::core::v1::Node;

/// All machines, by Node name.
pub type Machines = BTreeMap<String, Machine>;

/// The facts of a machine that the network needs. IPv6 is not supported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Addresses of the machine's pods; `None` before node IPAM has assigned a range.
    pub range: Option<Ipv4Net>,
    /// The address for packets from further machines; `None` before the kubelet has reported an address.
    pub address: Option<Ipv4Addr>,
}

impl Machine {
    /// The machine of a Node.
    #[must_use]
    pub fn from_node(node: &Node) -> Self {
        let spec = node.spec.as_ref();
        let ranges = spec.into_iter().flat_map(|spec| {
            let more = spec.pod_cidrs.iter().flatten();
            more.chain(&spec.pod_cidr)
        });
        let addresses = node
            .status
            .iter()
            .flat_map(|status| status.addresses.iter().flatten());
        Self {
            range: ranges
                .filter_map(|range| range.parse::<Ipv4Net>().ok())
                .map(|range| range.trunc())
                .next(),
            address: addresses
                .filter(|address| address.type_ == "InternalIP")
                .find_map(|address| address.address.parse().ok()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use kube::{ResourceExt, runtime::watcher::Event};
    use runtime::client::informer::InformerStore;
    use serde_json::json;

    use super::*;

    fn node(name: &str, ranges: &[&str], addresses: &[(&str, &str)]) -> Node {
        let addresses: Vec<_> = addresses
            .iter()
            .map(|(type_, address)| json!({"type": type_, "address": address}))
            .collect();
        serde_json::from_value(json!({
            "metadata": {"name": name},
            "spec": {"podCIDR": ranges.first(), "podCIDRs": ranges},
            "status": {"addresses": addresses},
        }))
        .unwrap()
    }

    fn simple(name: &str) -> Node {
        node(name, &["10.0.1.0/24"], &[("InternalIP", "192.0.2.1")])
    }

    /// Follows Nodes like an agent.
    #[derive(Default)]
    struct Fleet(InformerStore<Machine>);

    impl Fleet {
        fn take(&mut self, event: Event<Node>) -> Option<&Machines> {
            self.0.take(event, |node| Some(Machine::from_node(node)))
        }
    }

    fn names(fleet: &Fleet) -> Option<Vec<&str>> {
        let known = fleet.0.known_values()?;
        Some(known.keys().map(String::as_str).collect())
    }

    #[test]
    fn the_first_address_and_range_of_version_4_count() {
        let dual = node(
            "a",
            &["fd00::/64", "10.0.1.7/24"],
            &[
                ("Hostname", "a"),
                ("ExternalIP", "203.0.113.1"),
                ("InternalIP", "fd01::1"),
                ("InternalIP", "192.0.2.1"),
            ],
        );
        let expected = Machine {
            range: Some("10.0.1.0/24".parse().unwrap()),
            address: Some("192.0.2.1".parse().unwrap()),
        };
        assert_eq!(Machine::from_node(&dual), expected);
        assert_eq!(Machine::from_node(&Node::default()), Machine::default());
        assert_eq!(
            Machine::from_node(&node("a", &["nonsense"], &[("InternalIP", "x")])),
            Machine::default()
        );
    }

    #[test]
    fn a_list_counts_when_it_is_complete() {
        let mut fleet = Fleet::default();
        // Events before the first list are not the complete state.
        assert!(fleet.take(Event::Apply(simple("a"))).is_none());
        assert!(fleet.take(Event::Init).is_none());
        assert!(fleet.take(Event::InitApply(simple("a"))).is_none());
        assert!(fleet.take(Event::InitApply(simple("b"))).is_none());
        assert_eq!(fleet.take(Event::InitDone).unwrap().len(), 2);
        // A list that breaks off and begins again.
        assert!(fleet.take(Event::Init).is_none());
        assert!(fleet.take(Event::InitApply(simple("b"))).is_none());
        assert_eq!(names(&fleet), Some(vec!["a", "b"]));
        assert!(fleet.take(Event::Init).is_none());
        assert!(fleet.take(Event::InitApply(simple("b"))).is_none());
        assert_eq!(fleet.take(Event::InitDone).unwrap().len(), 1);
    }

    #[test]
    fn only_what_the_network_sees_is_a_change() {
        let mut fleet = Fleet::default();
        fleet.take(Event::Init);
        fleet.take(Event::InitDone);
        assert!(fleet.take(Event::Apply(simple("a"))).is_some());
        let mut labelled = simple("a");
        labelled.labels_mut().insert("more".into(), "of it".into());
        assert!(fleet.take(Event::Apply(labelled)).is_none());
        assert!(fleet.take(Event::Delete(simple("b"))).is_none());
        assert_eq!(fleet.take(Event::Delete(simple("a"))).unwrap().len(), 0);
    }
}
