//! Checks that the pods network has room for the maximum size of all pools. Pure.

use api::gardencore::shoot::Worker;
use runtime::Result;

use crate::configuration_problem;

/// Prefix length of a node's range, for IPv4 and IPv6: the default of the managers that assign ranges.
const NODE_CIDR_PREFIX_LEN: [u32; 2] = [24, 64];

/// Reports, before any creation, that some nodes would never get a range, and so could run no pod (I8).
/// Counts the maximum of the pools, as upstream does.
pub(crate) fn check(pools: &[Worker], network: &str) -> Result<()> {
    let wanted: u64 = pools
        .iter()
        .map(|pool| u64::try_from(pool.maximum).unwrap_or_default())
        .sum();
    match room(network) {
        Some(room) if wanted > room => Err(configuration_problem(format!(
            "the pods network {network} has room for {room} nodes, and the worker pools may have {wanted} together: lower maximum \
             of some, or make a Shoot with a larger spec.networking.pods"
        ))),
        _ => Ok(()),
    }
}

/// Number of possible nodes. `None` for an invalid network, which a different check reports.
fn room(network: &str) -> Option<u64> {
    let (_, length) = network.split_once('/')?;
    let length: u32 = length.parse().ok()?;
    let of_a_node = NODE_CIDR_PREFIX_LEN[usize::from(network.contains(':'))];
    Some(of_a_node.checked_sub(length).map_or(0, |bits| 1 << bits.min(63)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn pools(maximums: &[i32]) -> Vec<Worker> {
        let pool = |maximum: &i32| Worker {
            maximum: *maximum,
            ..Worker::default()
        };
        maximums.iter().map(pool).collect()
    }

    #[test]
    fn as_many_nodes_as_there_are_ranges() {
        for (network, fit) in [
            ("10.0.0.0/24", 1),
            ("10.0.0.0/22", 4),
            ("100.96.0.0/11", 8192),
            ("fd00::/56", 256),
        ] {
            assert!(check(&pools(&[fit]), network).is_ok(), "{network}");
            let error = check(&pools(&[fit, 1]), network).unwrap_err().to_string();
            assert!(error.contains(&format!("room for {fit} nodes")), "{error}");
        }
        assert!(check(&pools(&[1]), "10.0.0.0/25").is_err());
        assert!(check(&pools(&[]), "10.0.0.0/25").is_ok());
        assert!(check(&pools(&[5000]), "fd00::/0").is_ok());
    }
}
