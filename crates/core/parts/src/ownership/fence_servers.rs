//! The DNS servers that have to show a destination before the fence begins: every server that a process of a
//! former owner may ask. A single server left out could extend the permit of a former owner
//! (docs/understand/ownership.md, "Which servers").

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    time::Duration,
};

use api::gardencore::{Seed as SeedObject, Shoot, seed::OwnerChecks, shoot::SeedOwnerCheck};
use kube::ResourceExt;
use ownership::{AskedServers, Authorities, fence_servers};
use runtime::{Error, Result, client::Cluster, error::Explain};

use crate::{
    Facts, configuration_problem,
    ownership::{owner_claim, owner_terms},
};

/// Timeout of a lookup of all NS records with their addresses.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The servers, each with the seeds whose processes may ask the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FenceServers(BTreeMap<SocketAddr, BTreeSet<String>>);

impl FenceServers {
    /// Reads the Seeds of all former owners in each attempt, so that a correction of a Seed takes effect.
    pub(crate) async fn read(f: &Facts) -> Result<Self> {
        let own = f.seed_object.name_any();
        let named = owner_claim::authorities(&f.seed_object)?;
        let mut seeds = former_servers(f, &own).await?;
        let asked = AskedServers {
            uses_ns_records: named.is_empty(),
            servers: named.into_iter().collect(),
        };
        seeds.push((own, asked));
        let found = if seeds.iter().any(|(_, asked)| asked.uses_ns_records) {
            found_servers(f).await?
        } else {
            Vec::new()
        };
        Ok(Self(fence_servers(seeds, &found)))
    }

    /// The addresses of all servers.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.0.keys().copied()
    }

    /// All servers, as a single list of authorities.
    pub(crate) fn authorities(&self, zone: &str) -> Result<Authorities> {
        Authorities::named(zone, self.addresses()).map_err(|error| configuration_problem(error.to_string()))
    }

    /// Names the seed of each server that the seed `own` would not ask: only such a server needs an
    /// explanation.
    pub(crate) fn describe_foreign(&self, own: &str) -> String {
        let foreign = self.0.iter().filter(|(_, seeds)| !seeds.contains(own));
        let described: Vec<_> = foreign
            .map(|(server, seeds)| {
                let seeds: Vec<_> = seeds.iter().map(String::as_str).collect();
                format!("{server} is asked by seed {}", seeds.join(" and seed "))
            })
            .collect();
        if described.is_empty() {
            return String::new();
        }
        format!(" ({})", described.join(", "))
    }
}

/// The former owners whose processes may still ask, except seeds that a user has stated to be off.
fn former_owners(shoot: &Shoot, own: &str) -> BTreeSet<String> {
    let mut seeds = owner_terms::others(shoot, own);
    let status = shoot.status.as_ref();
    seeds.retain(|seed| !status.is_some_and(|status| status.is_stated_off(seed)));
    seeds
}

async fn former_servers(f: &Facts, own: &str) -> Result<Vec<(String, AskedServers)>> {
    let status = f.shoot.status.as_ref();
    let reported = |seed: &str| status.and_then(|status| status.owner_check_in(seed));
    let (record, dns) = owner_claim::name(&f.seed_object, &f.names)?;
    let has_same_record = |name: &str| match reported(name)
        .and_then(|entry| other_record(entry, &record, dns.zone_name()))
    {
        None => Ok(()),
        Some(other) => Err(configuration_problem(format!(
            "the fence cannot begin: processes of seed {name} ask for the owner record {other} (status.ownerChecks of the Shoot), and seed \
             {own} writes {record} in zone {}, so that nothing that seed {own} writes ends their permits; give Seed {own} the \
             spec.dns.internal of before, or, if no process of seed {name} runs any more, remove name and zone from the entry",
            dns.zone_name()
        ))),
    };
    let mut all = Vec::new();
    for name in former_owners(&f.shoot, own) {
        let seeds = f.garden.cluster_wide::<SeedObject>();
        let found = seeds.get_opt(&name).await;
        let found = found.context(format_args!("could not read Seed {name}, which had the shoot"))?;
        has_same_record(&name)?;
        let known = servers_of(&name, found.as_ref(), reported(&name))?;
        all.push((name, known));
    }
    // Processes from an earlier residency in this seed use their settings from the start of the process.
    if let Some(earlier) = reported(own).filter(|entry| entry.epoch < f.epoch()) {
        has_same_record(own)?;
        // This Seed exists: a process that has not reported servers yet uses the settings of the Seed.
        let settings = Some(&f.seed_object);
        all.push((own.to_owned(), servers_of(own, settings, Some(earlier))?));
    }
    Ok(all)
}

/// The record that processes of a former owner ask for, where the record differs from the record of this
/// seed. An entry without name and zone is older than these fields.
fn other_record(entry: &SeedOwnerCheck, name: &str, zone: &str) -> Option<String> {
    let differs = |reported: &Option<String>, own: &str| {
        let reported = reported.as_ref()?.trim_end_matches('.');
        Some(!reported.eq_ignore_ascii_case(own.trim_end_matches('.')))
    };
    let is_other = differs(&entry.name, name) == Some(true) || differs(&entry.zone, zone) == Some(true);
    is_other.then(|| {
        format!(
            "{} in zone {}",
            entry.name.as_deref().unwrap_or("with an unknown name"),
            entry.zone.as_deref().unwrap_or("with an unknown name")
        )
    })
}

/// Both the settings and the report count: processes may not have received the settings, or may use the
/// settings since the report.
fn servers_of(
    name: &str,
    seed: Option<&SeedObject>,
    reported: Option<&SeedOwnerCheck>,
) -> Result<AskedServers> {
    let mut known = AskedServers::default();
    // A gardenlet can write settings without a server where its Seed had none. Such settings count only if
    // the seed has reported an entry.
    let has_asked =
        |checks: &OwnerChecks| checks.enabled || !checks.authorities.is_empty() || reported.is_some();
    if let Some(seed) = seed
        && seed.spec.owner_checks().is_some_and(has_asked)
    {
        known.servers.extend(owner_claim::authorities(seed)?);
        known.uses_ns_records = known.servers.is_empty();
    }
    let is_complete = |entry: &SeedOwnerCheck| entry.servers_named.is_some() && entry.fence_seconds.is_some();
    if seed.is_none() && !reported.is_some_and(is_complete) {
        return Err(configuration_problem(format!(
            "the fence cannot begin: Seed {name}, which had the shoot, was deleted, and status.ownerChecks of the Shoot does not say \
             which DNS servers its processes ask and how long they may act; add an entry for seed {name} with servers, serversNamed and \
             fenceSeconds to status.ownerChecks (without servers and with fenceSeconds 0 if no process of the seed runs any more)"
        )));
    }
    for server in reported.iter().flat_map(|entry| &entry.servers) {
        let address = server.parse().map_err(|_| {
            configuration_problem(format!(
                "the fence cannot begin: server {server:?} in status.ownerChecks of the Shoot (seed {name}) is not an address with a \
                 port; correct the entry"
            ))
        })?;
        known.servers.insert(address);
    }
    known.uses_ns_records |= reported.is_some_and(|entry| entry.servers_named == Some(false));
    Ok(known)
}

async fn found_servers(f: &Facts) -> Result<Vec<SocketAddr>> {
    let (_, dns) = owner_claim::name(&f.seed_object, &f.names)?;
    let authorities =
        Authorities::discover(dns.zone_name()).map_err(|error| configuration_problem(error.to_string()))?;
    let servers = authorities.every_server(LOOKUP_TIMEOUT).await;
    servers.map_err(|why| Error::transient(format!("the former seed is not fenced yet: {why}")))
}

#[cfg(test)]
#[path = "fence_servers_tests.rs"]
mod tests;
