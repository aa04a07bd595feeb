//! The changes that bring the kernel's tables to the plan, in an order that loses no packet. The entries that
//! a route needs are added before the route, and removed after the route.

use std::{collections::BTreeMap, net::Ipv4Addr};

use ipnet::Ipv4Net;

use crate::plan::{HardwareAddress, Tables};

/// A change. An added entry replaces an existing entry with the same key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Packets for this hardware address go to this machine.
    Forward(HardwareAddress, Ipv4Addr),
    /// This gateway has this hardware address.
    Meet(Ipv4Addr, HardwareAddress),
    /// This range is behind this gateway.
    Route(Ipv4Net, Ipv4Addr),
    /// Removes the route.
    Unroute(Ipv4Net),
    /// Removes the neighbour.
    Part(Ipv4Addr),
    /// Removes the forwarding.
    Unforward(HardwareAddress, Ipv4Addr),
}

/// The changes that turn `actual` into `wanted`. Empty without a difference.
#[must_use]
pub fn changes(actual: &Tables, wanted: &Tables) -> Vec<Change> {
    let mut all = Vec::new();
    all.extend(missing(&actual.forwarding, &wanted.forwarding).map(|(k, v)| Change::Forward(k, v)));
    all.extend(missing(&actual.neighbours, &wanted.neighbours).map(|(k, v)| Change::Meet(k, v)));
    all.extend(missing(&actual.routes, &wanted.routes).map(|(k, v)| Change::Route(k, v)));
    all.extend(left(&actual.routes, &wanted.routes).map(|(k, _)| Change::Unroute(k)));
    all.extend(left(&actual.neighbours, &wanted.neighbours).map(|(k, _)| Change::Part(k)));
    all.extend(left(&actual.forwarding, &wanted.forwarding).map(|(k, v)| Change::Unforward(k, v)));
    all
}

/// The wanted entries that are missing or different.
fn missing<'a, K: Ord + Copy, V: PartialEq + Copy>(
    actual: &'a BTreeMap<K, V>,
    wanted: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (K, V)> + 'a {
    let pairs = wanted.iter().map(|(key, value)| (*key, *value));
    pairs.filter(|(key, value)| actual.get(key) != Some(value))
}

/// The existing entries that are not wanted.
fn left<'a, K: Ord + Copy, V: Copy>(
    actual: &'a BTreeMap<K, V>,
    wanted: &'a BTreeMap<K, V>,
) -> impl Iterator<Item = (K, V)> + 'a {
    let pairs = actual.iter().map(|(key, value)| (*key, *value));
    pairs.filter(|(key, _)| !wanted.contains_key(key))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::plan::hardware_address;

    fn tables(of: &[(&str, [u8; 4])]) -> Tables {
        let mut tables = Tables::default();
        for (range, address) in of {
            let range: Ipv4Net = range.parse().unwrap();
            let address = Ipv4Addr::from(*address);
            let hardware = hardware_address(address);
            tables.routes.insert(range, range.network());
            tables.neighbours.insert(range.network(), hardware);
            tables.forwarding.insert(hardware, address);
        }
        tables
    }

    #[test]
    fn what_is_right_is_not_touched() {
        let tables = tables(&[("10.0.1.0/24", [192, 0, 2, 1]), ("10.0.2.0/24", [192, 0, 2, 2])]);
        assert_eq!(changes(&tables, &tables), []);
    }

    #[test]
    fn a_route_comes_last_and_goes_first() {
        let (one, other) = (
            tables(&[("10.0.1.0/24", [192, 0, 2, 1])]),
            tables(&[("10.0.2.0/24", [192, 0, 2, 2])]),
        );
        let (range, gone) = ("10.0.2.0/24".parse().unwrap(), "10.0.1.0/24".parse().unwrap());
        let (new, old) = (Ipv4Addr::new(192, 0, 2, 2), Ipv4Addr::new(192, 0, 2, 1));
        let expected = [
            Change::Forward(hardware_address(new), new),
            Change::Meet(Ipv4Addr::new(10, 0, 2, 0), hardware_address(new)),
            Change::Route(range, Ipv4Addr::new(10, 0, 2, 0)),
            Change::Unroute(gone),
            Change::Part(Ipv4Addr::new(10, 0, 1, 0)),
            Change::Unforward(hardware_address(old), old),
        ];
        assert_eq!(changes(&one, &other), expected);
    }

    /// A new machine with the range of a former machine.
    #[test]
    fn a_range_that_moves_to_another_machine_keeps_its_route() {
        let (one, other) = (
            tables(&[("10.0.1.0/24", [192, 0, 2, 1])]),
            tables(&[("10.0.1.0/24", [192, 0, 2, 2])]),
        );
        let (new, old) = (Ipv4Addr::new(192, 0, 2, 2), Ipv4Addr::new(192, 0, 2, 1));
        let expected = [
            Change::Forward(hardware_address(new), new),
            Change::Meet(Ipv4Addr::new(10, 0, 1, 0), hardware_address(new)),
            Change::Unforward(hardware_address(old), old),
        ];
        assert_eq!(changes(&one, &other), expected);
    }
}
