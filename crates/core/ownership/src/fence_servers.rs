//! The DNS servers that have to show a destination before the fence begins: a pure function of the servers
//! that each seed asks.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// The servers that processes of one seed may ask for owner records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AskedServers {
    /// Servers that settings or reports name.
    pub servers: BTreeSet<SocketAddr>,
    /// Processes of the seed find servers by the NS records of the zone.
    pub uses_ns_records: bool,
}

/// Every server that a process of one of these seeds may ask, with the seeds that ask the server. The seeds
/// are the destination and all former owners: a single server left out could extend the permit of a former
/// owner. `found`: the servers that the NS records name.
pub fn fence_servers<S: Clone + Ord>(
    seeds: impl IntoIterator<Item = (S, AskedServers)>,
    found: &[SocketAddr],
) -> BTreeMap<SocketAddr, BTreeSet<S>> {
    let mut all: BTreeMap<_, BTreeSet<S>> = BTreeMap::new();
    for (seed, asked) in seeds {
        let found = found.iter().copied().filter(|_| asked.uses_ns_records);
        for server in asked.servers.into_iter().chain(found) {
            all.entry(server).or_default().insert(seed.clone());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn servers(texts: &[&str]) -> BTreeSet<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn asked(texts: &[&str], uses_ns_records: bool) -> AskedServers {
        AskedServers {
            servers: servers(texts),
            uses_ns_records,
        }
    }

    #[test]
    fn the_servers_of_all_seeds_count_and_those_of_ns_records_where_a_seed_uses_them() {
        let found: Vec<_> = servers(&["192.0.2.8:53", "192.0.2.9:53"]).into_iter().collect();
        for (seeds, expected) in [
            (
                vec![("b", asked(&["192.0.2.1:53"], false))],
                vec![("192.0.2.1:53", vec!["b"])],
            ),
            (
                vec![
                    ("a", asked(&["192.0.2.1:53", "192.0.2.9:53"], false)),
                    ("b", asked(&["192.0.2.1:53"], false)),
                ],
                vec![("192.0.2.1:53", vec!["a", "b"]), ("192.0.2.9:53", vec!["a"])],
            ),
            (
                vec![
                    ("a", asked(&["192.0.2.9:53"], true)),
                    ("b", asked(&["192.0.2.1:53"], false)),
                ],
                vec![
                    ("192.0.2.1:53", vec!["b"]),
                    ("192.0.2.8:53", vec!["a"]),
                    ("192.0.2.9:53", vec!["a"]),
                ],
            ),
        ] {
            let expected: BTreeMap<_, BTreeSet<_>> = expected
                .into_iter()
                .map(|(server, seeds)| (server.parse().unwrap(), seeds.into_iter().collect()))
                .collect();
            assert_eq!(fence_servers(seeds, &found), expected);
        }
    }
}
