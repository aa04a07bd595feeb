//! Machines from the hosts' point of view.

use std::{collections::BTreeSet, net::IpAddr};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use crate::pod::{self, CLUSTER};

/// The selector of machines among all objects of an account.
pub const MACHINES: &str = CLUSTER;

/// A machine that may exchange packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The cluster of the machine: the shoot's technical id.
    pub cluster: String,
    /// The account's name of the machine's zone.
    pub zone: String,
    /// The addresses of the machine; empty before the host has assigned addresses.
    pub addresses: BTreeSet<IpAddr>,
    /// The machine is terminating, and may have lost the link.
    pub leaves: bool,
}

impl Machine {
    /// The machine of an instance's pod. `None` for a pod that is not an instance, and for a pod whose
    /// containers have all ended. A later pod may have the addresses by now.
    #[must_use]
    pub fn from_pod(pod: &Pod) -> Option<Self> {
        let status = pod.status.as_ref();
        let phase = status.and_then(|status| status.phase.as_deref());
        let cluster = pod.labels().get(CLUSTER)?.clone();
        let addresses = status.into_iter().flat_map(|status| {
            let more = status.pod_ips.iter().flatten().map(|ip| &ip.ip);
            more.chain(&status.pod_ip)
        });
        (!matches!(phase, Some("Succeeded" | "Failed"))).then(|| Self {
            cluster,
            zone: pod::read_annotation(pod, pod::ZONE),
            addresses: addresses.filter_map(|ip| ip.parse().ok()).collect(),
            leaves: pod.metadata.deletion_timestamp.is_some(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn machine(status: &Value) -> Option<Machine> {
        let pod = json!({"metadata": {"labels": {CLUSTER: "shoot--dev--web"}, "annotations": {pod::ZONE: "a"}}, "status": status});
        Machine::from_pod(&serde_json::from_value(pod).unwrap())
    }

    #[test]
    fn it_has_all_addresses_of_its_pod_while_that_runs() {
        let both = json!({"phase": "Running", "podIP": "10.0.0.1", "podIPs": [{"ip": "10.0.0.1"}, {"ip": "fd00::1"}]});
        let found = machine(&both).unwrap();
        let expected: BTreeSet<IpAddr> = ["10.0.0.1", "fd00::1"].map(|ip| ip.parse().unwrap()).into();
        assert_eq!((found.zone.as_str(), found.addresses), ("a", expected));
        assert!(machine(&json!({})).unwrap().addresses.is_empty());
        let ended = json!({"phase": "Failed", "podIP": "10.0.0.1"});
        assert_eq!(machine(&ended), None);
        assert_eq!(Machine::from_pod(&Pod::default()), None);
    }
}
