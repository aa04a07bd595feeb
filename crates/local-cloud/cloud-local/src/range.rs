//! IPv4 ranges: parsing, and the search for a free range. Pure.

use api::meta::ErrorCode;
use ipnet::Ipv4Net;
use runtime::{Error, Result};

/// Prefix length of an assigned network: 254 machines.
pub const GIVEN_OUT: u8 = 24;

/// The first free range of a pool. `None`: all ranges are taken, or the pool is smaller than a range.
#[must_use]
pub fn free(pool: Ipv4Net, taken: &[Ipv4Net]) -> Option<Ipv4Net> {
    let mut candidates = pool.subnets(GIVEN_OUT).ok()?;
    candidates.find(|candidate| !taken.iter().any(|other| overlap(candidate, other)))
}

/// Whether two ranges share an address: then one range contains the other.
#[must_use]
pub fn overlap(one: &Ipv4Net, other: &Ipv4Net) -> bool {
    one.contains(other) || other.contains(one)
}

/// Reads a range that a user wrote in `field`.
pub fn parse(text: &str, field: &str) -> Result<Ipv4Net> {
    read(text).map_err(|why| Error::config(ErrorCode::ErrConfigurationProblem, format!("{field}: {why}")))
}

/// Parses a range that begins at a boundary of the range's size.
pub fn read(text: &str) -> Result<Ipv4Net, String> {
    let written: Ipv4Net = text
        .parse()
        .map_err(|_| format!("{text:?} is no IPv4 range such as 10.180.0.0/14"))?;
    let range = written.trunc();
    if range != written {
        return Err(format!(
            "{text:?} does not begin at a boundary of its size: write {range}"
        ));
    }
    Ok(range)
}

/// The range around an address, at any position in the range. kube-controller-manager parses its flags like
/// this. A range that kube-controller-manager accepts must not stop the process that takes over node IPAM.
pub fn around(text: &str) -> Result<Ipv4Net, String> {
    text.parse()
        .map(|written: Ipv4Net| written.trunc())
        .map_err(|_| format!("{text:?} is no IPv4 range such as 100.96.0.0/11"))
}

#[cfg(test)]
#[path = "range_tests.rs"]
mod tests;
