//! The plan for this machine, derived from all machines. Pure.

use std::{collections::BTreeMap, net::Ipv4Addr};

use ipnet::Ipv4Net;

use crate::fleet::{Machine, Machines};

/// Address of a network device.
pub type HardwareAddress = [u8; 6];

/// The wanted network of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// This machine's address, used by the VXLAN device to send and receive.
    pub address: Ipv4Addr,
    /// Addresses of this machine's pods.
    pub range: Ipv4Net,
    /// The routes to the pods of further machines.
    pub tables: Tables,
    /// Nodes without a route, with the reason. A sentence each.
    pub passed_over: Vec<String>,
}

/// Tables of the kernel for the VXLAN device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// Ranges of pods and the gateway to each.
    pub routes: BTreeMap<Ipv4Net, Ipv4Addr>,
    /// Hardware addresses by gateway.
    pub neighbours: BTreeMap<Ipv4Addr, HardwareAddress>,
    /// Machine addresses by hardware address.
    pub forwarding: BTreeMap<HardwareAddress, Ipv4Addr>,
}

impl Plan {
    /// The VXLAN device's own address: the first address of the range, because no pod gets that address. The
    /// address is the source of packets from the machine to remote pods, so that answers return through
    /// VXLAN.
    #[must_use]
    pub fn gateway(&self) -> Ipv4Addr {
        self.range.network()
    }
}

/// The hardware address of the VXLAN device of the machine with this address. Locally administered, and
/// unique for each address, so that no agent has to announce the hardware address.
#[must_use]
pub fn hardware_address(address: Ipv4Addr) -> HardwareAddress {
    let [a, b, c, d] = address.octets();
    [0x02, b'n', a, b, c, d]
}

/// Computes the plan for the machine of the Node `own`. `pods`: addresses of all pods.
///
/// # Errors
/// A sentence with the awaited event. The caller must change nothing then: the known Nodes may be incomplete.
pub fn plan(machines: &Machines, own: &str, pods: Ipv4Net) -> Result<Plan, String> {
    let machine = machines.get(own).ok_or_else(|| {
        format!("there is no Node {own}: its kubelet has not joined yet, or it was deleted")
    })?;
    let address = machine
        .address
        .ok_or_else(|| format!("Node {own} has no InternalIP of version 4 yet"))?;
    let range = machine
        .range
        .ok_or_else(|| format!("Node {own} has no podCIDR of version 4 yet"))?;
    let mut plan = Plan {
        address,
        range,
        tables: Tables::default(),
        passed_over: Vec::new(),
    };
    for (name, machine) in machines.iter().filter(|(name, _)| *name != own) {
        match plan.way_to(machine, pods) {
            Ok(Some((range, address))) => plan.tables.add(range, address),
            // The Node is not complete yet.
            Ok(None) => {}
            Err(why) => plan.passed_over.push(format!("Node {name} {why}")),
        }
    }
    Ok(plan)
}

impl Plan {
    /// A Node must not attract foreign traffic: neither traffic of this machine nor traffic to the outside.
    fn way_to(&self, machine: &Machine, pods: Ipv4Net) -> Result<Option<(Ipv4Net, Ipv4Addr)>, String> {
        let (Some(range), Some(address)) = (machine.range, machine.address) else {
            return Ok(None);
        };
        let overlaps = |other: &Ipv4Net| other.contains(&range) || range.contains(other);
        if !pods.contains(&range) {
            return Err(format!("has the podCIDR {range}, which is not a part of {pods}"));
        }
        if address == self.address {
            return Err(format!(
                "has the address of this machine, {address}: it is of an earlier one"
            ));
        }
        if overlaps(&self.range) {
            return Err(format!(
                "has the podCIDR {range}, which overlaps this machine's {}",
                self.range
            ));
        }
        if let Some(other) = self.tables.routes.keys().find(|other| overlaps(other)) {
            return Err(format!(
                "has the podCIDR {range}, which overlaps another machine's {other}"
            ));
        }
        Ok(Some((range, address)))
    }
}

impl Tables {
    /// Two Nodes may have the same address, when a later machine got the address of a former machine: both
    /// routes lead to the later machine.
    fn add(&mut self, range: Ipv4Net, address: Ipv4Addr) {
        let (gateway, hardware) = (range.network(), hardware_address(address));
        self.routes.insert(range, gateway);
        self.neighbours.insert(gateway, hardware);
        self.forwarding.insert(hardware, address);
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
