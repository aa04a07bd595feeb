//! The authorities of the zone with the owner records: the DNS servers that a check asks.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use hickory_proto::rr::{Name, RData, RecordType};
use hickory_resolver::TokioResolver;
use hickory_resolver::config::ResolveHosts;
use tokio::time::{Instant, timeout_at};

use crate::claim::{OwnershipClaim, absolute};

/// The NS records are looked up again after this time. Much shorter than the time between changes of a zone's
/// servers.
const LOOKED_FOR_EVERY: Duration = Duration::from_secs(30);

/// Found servers stay valid for this time while the lookup fails: an outage of resolvers is not an outage of
/// the zone. An administrator must stop a server before removing the NS record, because this list and the
/// caches of resolvers keep the server for a while.
const SERVERS_VALID_FOR: Duration = Duration::from_secs(10 * 60);

/// More servers than any zone has.
const MOST: usize = 32;

/// The servers to ask, named or found by NS records.
pub struct Authorities {
    pub(crate) zone: Name,
    source: Source,
}

enum Source {
    Named(Vec<SocketAddr>),
    Found(Box<Finder>),
}

struct Finder {
    resolver: TokioResolver,
    port: u16,
    known: Mutex<Option<Known>>,
}

#[derive(Clone)]
struct Known {
    since: Instant,
    servers: Vec<SocketAddr>,
    /// The last resolved addresses of each name server.
    hosts: BTreeMap<Name, ResolvedHost>,
}

#[derive(Clone)]
struct ResolvedHost {
    since: Instant,
    addresses: Vec<SocketAddr>,
}

/// The NS records of a zone, each with its addresses or the reason why these could not be resolved.
type NameServers = BTreeMap<Name, Result<Vec<SocketAddr>, String>>;

/// The authorities cannot be asked for a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthoritiesError {
    /// The zone's name is invalid.
    #[error("the zone {name:?} is no DNS name: {why}")]
    Zone {
        /// The name as given.
        name: String,
        /// The reason.
        why: String,
    },
    /// No server is named, or too many are.
    #[error("{0} authorities are named for the zone; name 1 to {MOST}")]
    Number(usize),
    /// The system's resolver, needed to look up the zone's servers, cannot be used.
    #[error("the resolver of this machine cannot be used to find the zone's servers: {0}; name the servers")]
    Resolver(String),
    /// The owner record is outside the zone.
    #[error("the owner record {name} is not in the zone {zone}: correct the zone")]
    OutsideZone {
        /// The owner record's name.
        name: String,
        /// The zone.
        zone: String,
    },
}

impl Authorities {
    /// These servers of this zone. The safest option: no cache influences the list of servers. Source and
    /// destination must name the same servers. A server that only the source asks could extend the source's
    /// permits while all other servers show the destination.
    pub fn named(
        zone: &str,
        servers: impl IntoIterator<Item = SocketAddr>,
    ) -> Result<Self, AuthoritiesError> {
        let mut servers: Vec<SocketAddr> = servers.into_iter().collect();
        servers.sort_unstable();
        servers.dedup();
        if servers.is_empty() || servers.len() > MOST {
            return Err(AuthoritiesError::Number(servers.len()));
        }
        Ok(Self {
            zone: zone_name(zone)?,
            source: Source::Named(servers),
        })
    }

    /// The servers that the zone's NS records name, found by this machine's resolver and asked at port 53.
    /// Resolvers may keep the NS records for the TTL of the records.
    pub fn discover(zone: &str) -> Result<Self, AuthoritiesError> {
        let wrong = |error: hickory_resolver::net::NetError| AuthoritiesError::Resolver(error.to_string());
        let mut builder = TokioResolver::builder_tokio().map_err(wrong)?;
        let options = builder.options_mut();
        options.cache_size = 0;
        options.attempts = 1;
        options.use_hosts_file = ResolveHosts::Never;
        Self::discover_with(zone, builder.build().map_err(wrong)?, 53)
    }

    /// As [`Authorities::discover`], by the given resolver and at the given port.
    pub fn discover_with(zone: &str, resolver: TokioResolver, port: u16) -> Result<Self, AuthoritiesError> {
        let finder = Finder {
            resolver,
            port,
            known: Mutex::default(),
        };
        Ok(Self {
            zone: zone_name(zone)?,
            source: Source::Found(Box::new(finder)),
        })
    }

    /// Fails unless the claim's records belong to this zone.
    pub fn check(&self, claim: &OwnershipClaim) -> Result<(), AuthoritiesError> {
        if self.zone.zone_of(&claim.owner_name) {
            return Ok(());
        }
        Err(AuthoritiesError::OutsideZone {
            name: claim.owner_name.to_ascii(),
            zone: self.zone.to_ascii(),
        })
    }

    /// Whether the servers are named, or found by the NS records of the zone.
    #[must_use]
    pub fn are_named(&self) -> bool {
        matches!(self.source, Source::Named(_))
    }

    /// The present servers, without any lookup. Empty before the first lookup of the NS records.
    #[must_use]
    pub fn known_servers(&self) -> Vec<SocketAddr> {
        match &self.source {
            Source::Named(servers) => servers.clone(),
            Source::Found(finder) => finder.read_cache().map_or_else(Vec::new, |known| known.servers),
        }
    }

    /// Every server, looked up again where the servers are not named. A check continues with the servers that
    /// have an address. This function fails if the address of a single server cannot be found, because a
    /// former owner may still ask that server.
    pub async fn every_server(&self, within: Duration) -> Result<Vec<SocketAddr>, String> {
        let finder = match &self.source {
            Source::Named(servers) => return Ok(servers.clone()),
            Source::Found(finder) => finder,
        };
        let hosts = finder.look_up(&self.zone, within).await?;
        let mut servers = Vec::new();
        for (host, addresses) in hosts {
            let addresses =
                addresses.map_err(|why| format!("server {host} of {} has no address: {why}", self.zone))?;
            servers.extend(addresses);
        }
        sorted(servers, &self.zone)
    }

    /// The known servers. Waits for a lookup only where no server is known, and no longer than `within`.
    pub(crate) async fn servers(&self, within: Duration) -> Result<Vec<SocketAddr>, String> {
        match &self.source {
            Source::Named(servers) => Ok(servers.clone()),
            Source::Found(finder) => match finder.read_cache() {
                Some(known) => Ok(known.servers),
                None => finder.find(&self.zone, within).await,
            },
        }
    }

    /// Looks the servers up again if the refresh is due. Runs beside the questions, so that the lookup delays
    /// no question.
    pub(crate) async fn refresh(&self, within: Duration) {
        let Source::Found(finder) = &self.source else {
            return;
        };
        let is_due = finder
            .read_cache()
            .is_none_or(|known| known.since.elapsed() >= LOOKED_FOR_EVERY);
        if is_due && let Err(why) = finder.find(&self.zone, within).await {
            tracing::warn!(zone = %self.zone, why, "the zone's servers cannot be found again");
        }
    }
}

impl Finder {
    fn read_cache(&self) -> Option<Known> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .clone()
            .filter(|known| known.since.elapsed() < SERVERS_VALID_FOR)
    }

    /// A server whose address cannot be resolved keeps the addresses of before, as a process of the former
    /// owner does.
    async fn find(&self, zone: &Name, within: Duration) -> Result<Vec<SocketAddr>, String> {
        let found = self.look_up(zone, within).await?;
        let since = Instant::now();
        let mut earlier = self.read_cache().map_or_else(BTreeMap::new, |known| known.hosts);
        let mut hosts = BTreeMap::new();
        for (host, addresses) in found {
            match addresses {
                Ok(addresses) => {
                    hosts.insert(host, ResolvedHost { since, addresses });
                }
                Err(why) => {
                    tracing::warn!(%zone, server = %host, why, "the address of a server of the zone cannot be found");
                    let kept = earlier
                        .remove(&host)
                        .filter(|kept| kept.since.elapsed() < SERVERS_VALID_FOR);
                    hosts.extend(kept.map(|kept| (host, kept)));
                }
            }
        }
        let addresses = hosts.values().flat_map(|host| host.addresses.iter().copied());
        let mut servers = sorted(addresses.collect(), zone)?;
        servers.truncate(MOST);
        let known = Known {
            since,
            servers: servers.clone(),
            hosts,
        };
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(known);
        Ok(servers)
    }

    /// Asks the resolver once, for all addresses at the same time: a name without an answer delays no other
    /// name.
    async fn look_up(&self, zone: &Name, within: Duration) -> Result<NameServers, String> {
        let end = Instant::now() + within;
        let found = timeout_at(end, self.resolver.lookup(zone.clone(), RecordType::NS)).await;
        let found = found
            .map_err(|_| format!("the servers of {zone} were not found within {within:?}"))?
            .map_err(|error| format!("the servers of {zone} cannot be found: {error}"))?;
        let hosts = found.answers().iter().filter_map(|record| match &record.data {
            RData::NS(host) => Some(host.0.clone()),
            _ => None,
        });
        let resolved = hosts.map(|host| async move {
            let addresses = match timeout_at(end, self.resolver.lookup_ip(host.clone())).await {
                Ok(Ok(found)) => Ok(found.iter().map(|ip| SocketAddr::new(ip, self.port)).collect()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(format!("no answer within {within:?}")),
            };
            (host, addresses)
        });
        Ok(join_all(resolved).await.into_iter().collect())
    }
}

fn sorted(mut servers: Vec<SocketAddr>, zone: &Name) -> Result<Vec<SocketAddr>, String> {
    servers.sort_unstable();
    servers.dedup();
    if servers.is_empty() {
        return Err(format!("no server of {zone} has an address"));
    }
    Ok(servers)
}

fn zone_name(zone: &str) -> Result<Name, AuthoritiesError> {
    absolute(zone).map_err(|why| AuthoritiesError::Zone {
        name: zone.to_owned(),
        why,
    })
}

#[cfg(test)]
#[path = "authorities_tests.rs"]
mod tests;
