//! Whether the processes of two seeds ask the same DNS servers for owner records, and whether all processes
//! of the source ask at all. A server that the source asks and the destination does not know could keep two
//! control planes alive: pure decisions.

use std::{collections::BTreeSet, net::SocketAddr};

use api::{
    constants::{
        FORCE_RESTORE_SOURCE_IS_OFF, OPERATION, SHOOT_FORCE_RESTORE, condition::OWNER_CHECKS_COMPLETE,
    },
    gardencore::{
        Seed, Shoot,
        shoot::{OwnershipPhase, SeedOwnerCheck},
    },
};
use kube::ResourceExt as _;
use placement::takeover::{OwnerCheckGap, find_owner_check_gap};

/// The origin of the server list of a seed's processes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Servers {
    /// The settings name them.
    Named(BTreeSet<SocketAddr>),
    /// The NS records of the zone name them.
    Found,
}

impl Servers {
    fn describe(&self) -> String {
        match self {
            Self::Found => "finds servers by the NS records of the zone".to_owned(),
            Self::Named(servers) => {
                let servers: Vec<_> = servers.iter().map(ToString::to_string).collect();
                format!("asks {}", servers.join(", "))
            }
        }
    }

    fn in_settings_of(seed: &Seed) -> Result<Self, String> {
        let named = seed.spec.owner_authorities();
        let named = named.map_err(|error| format!("Seed {} is invalid: {error}", seed.name_any()))?;
        Ok(if named.is_empty() {
            Self::Found
        } else {
            Self::Named(named.into_iter().collect())
        })
    }

    /// `None` where the process beside etcd has not reported any. The fence reads all servers of an entry, so
    /// an invalid server counts in each case.
    fn in_report(entry: &SeedOwnerCheck) -> Result<Option<Self>, String> {
        if let Some(why) = invalid_server(entry) {
            return Err(why);
        }
        Ok(entry.servers_named.map(|named| {
            if named {
                Self::Named(
                    entry
                        .servers
                        .iter()
                        .filter_map(|server| server.parse().ok())
                        .collect(),
                )
            } else {
                Self::Found
            }
        }))
    }
}

/// The first server of an entry that the fence could not ask.
fn invalid_server(entry: &SeedOwnerCheck) -> Option<String> {
    let mut servers = entry.servers.iter();
    let invalid = servers.find(|server| server.parse::<SocketAddr>().is_err())?;
    Some(format!(
        "status.ownerChecks of the Shoot has the invalid server {invalid:?} of seed {}, which is not an address with a port",
        entry.seed_name
    ))
}

/// Why the processes of two seeds may use different servers; `None` if the servers are the same.
#[must_use]
pub fn disagreement(source: &Seed, reported: Option<&SeedOwnerCheck>, destination: &Seed) -> Option<String> {
    let judged = || -> Result<Option<String>, String> {
        let wanted = Servers::in_settings_of(destination)?;
        let told = reported.map(Servers::in_report).transpose()?.flatten();
        let settings = Servers::in_settings_of(source)?;
        let (from, to) = (source.name_any(), destination.name_any());
        for (asks, place) in [
            (Some(settings), "spec.settings.ownerChecks.authorities"),
            (told, "as its processes report in status.ownerChecks of the Shoot"),
        ] {
            if let Some(asks) = asks.filter(|asks| *asks != wanted) {
                return Ok(Some(format!(
                    "seed {from} {} ({place}), and seed {to} {}",
                    asks.describe(),
                    wanted.describe()
                )));
            }
        }
        Ok(None)
    };
    judged().unwrap_or_else(Some)
}

/// Whether both Seeds keep owner records under the same domain, regardless of the spelling of each zone.
#[must_use]
pub fn share_domain(one: &Seed, other: &Seed) -> bool {
    let domain = |seed: &Seed| {
        let dns = seed
            .spec
            .dns
            .internal
            .as_ref()
            .filter(|_| seed.spec.checks_owners())?;
        Some(dns.domain.trim_end_matches('.').to_ascii_lowercase())
    };
    let domain_of_one = domain(one);
    domain_of_one.is_some() && domain_of_one == domain(other)
}

/// Why no fence of the destination is known to stop every process of the source. `opened`: the source has
/// opened the data of the shoot, so that its processes may act.
#[must_use]
pub fn obstacle(shoot: &Shoot, source: &Seed, destination: &Seed, opened: bool) -> Option<String> {
    let from = source.name_any();
    let entry = shoot
        .status
        .as_ref()
        .and_then(|status| status.owner_check_in(&from));
    let (why, remedy) = if let Some(why) = disagreement(source, entry, destination) {
        let remedy =
            format!("name the same servers in both Seeds, and reconcile the shoot while seed {from} lives");
        (why, remedy)
    } else if let Some(why) = entry.and_then(|entry| other_record(shoot, entry, destination)) {
        let remedy = format!(
            "give Seed {} the spec.dns.internal that the processes of seed {from} use",
            destination.name_any()
        );
        (why, remedy)
    } else {
        let why = incomplete(shoot, entry, source).filter(|_| opened)?;
        let remedy =
            format!("reconcile the shoot once while seed {from} lives (annotation {OPERATION}=reconcile)");
        (why, remedy)
    };
    Some(format!(
        "without a fence two control planes could write: {why}; {remedy}, or, if no process of seed {from} runs any more, state that with \
         {SHOOT_FORCE_RESTORE}={FORCE_RESTORE_SOURCE_IS_OFF}"
    ))
}

/// Why the fence of the destination could not begin: a former seed of the shoot reports a different owner
/// record, or an invalid server. A former seed writes its own entry as host, and could stop each later
/// takeover after the grant. A claim that has opened nothing keeps its source, which may have left
/// `status.formerSeeds`.
#[must_use]
pub fn obstacle_of_former_seeds(shoot: &Shoot, source: &Seed, destination: &Seed) -> Option<String> {
    let status = shoot.status.as_ref()?;
    let (from, to) = (source.name_any(), destination.name_any());
    let claim = status.ownership.as_ref();
    let claim = claim.filter(|record| record.phase == Some(OwnershipPhase::Claiming));
    let kept = claim.and_then(|record| record.source.as_ref());
    let former_seeds = status.former_seeds.iter().map(|former| former.name.as_str());
    let mut fenced = former_seeds.chain(kept.map(|source| source.name.as_str()));
    fenced.find_map(|former| {
        if former == from || status.is_stated_off(former) {
            return None;
        }
        let entry = status.owner_check_in(former)?;
        if let Some(why) = invalid_server(entry) {
            return Some(format!(
                "the fence of seed {to} could not begin: {why}; an administrator with the verb repair on shoots/ownership corrects the \
                 server, or removes the server if no process of seed {former} runs any more"
            ));
        }
        let why = other_record(shoot, entry, destination)?;
        Some(format!(
            "the fence of seed {to} could not begin: {why}; give Seed {to} the spec.dns.internal that the processes of seed {former} use, or, \
             if no process of seed {former} runs any more, remove name and zone from its entry"
        ))
    })
}

/// Why the owner record of the destination is none that the processes of the source ask for. An entry without
/// name and zone is older than these fields.
fn other_record(shoot: &Shoot, entry: &SeedOwnerCheck, destination: &Seed) -> Option<String> {
    let (name, zone) = (entry.name.as_deref()?, entry.zone.as_deref()?);
    let dns = destination.spec.dns.internal.as_ref();
    let wanted = dns.and_then(|dns| {
        let shoot = shoot.name_any();
        // Project and shoot are the same in both seeds; only the domain may differ.
        let project = name
            .strip_prefix("owner.")?
            .strip_prefix(&shoot)?
            .strip_prefix('.')?;
        let (project, _) = project.split_once('.')?;
        let api = format!(
            "api.{}",
            placement::names::internal_domain(&shoot, project, &dns.domain)
        );
        Some((placement::names::owner_record(&api)?, dns.zone_name()))
    });
    let same = |one: &str, other: &str| {
        one.trim_end_matches('.')
            .eq_ignore_ascii_case(other.trim_end_matches('.'))
    };
    if wanted
        .as_ref()
        .is_some_and(|(record, place)| same(record, name) && same(place, zone))
    {
        return None;
    }
    let to = destination.name_any();
    let writes = wanted.map_or_else(
        || "another record".to_owned(),
        |(record, place)| format!("{record} in zone {place}"),
    );
    Some(format!(
        "the processes of seed {} ask for the owner record {name} in zone {zone} (status.ownerChecks of the Shoot), and seed {to} would write \
         {writes}",
        entry.seed_name
    ))
}

/// Why processes of the source may have no owner check, or use servers that are not reported. The age of the
/// report does not matter: a dead seed sends no new report, and the processes of that seed stay as they are.
fn incomplete(shoot: &Shoot, entry: Option<&SeedOwnerCheck>, source: &Seed) -> Option<String> {
    let from = source.name_any();
    let status = shoot.status.as_ref()?;
    if let Some(gap) = find_owner_check_gap(status, source) {
        return Some(match gap {
            OwnerCheckGap::NeverReported => format!(
                "seed {from} has never reported that all processes of the shoot check the owner (condition {OWNER_CHECKS_COMPLETE})"
            ),
            OwnerCheckGap::Incomplete(complete) => format!(
                "condition {OWNER_CHECKS_COMPLETE} is {:?} ({})",
                complete.status,
                complete.message.trim_end_matches('.')
            ),
            OwnerCheckGap::Unfinished | OwnerCheckGap::OtherEpoch => format!(
                "a reconciliation in seed {from} has begun to change the owner terms and has not ended (status.ownerChecks has no terms)"
            ),
            OwnerCheckGap::SeedEdited => format!(
                "Seed {from} was edited (spec.settings.ownerChecks, spec.dns.internal or status.clusterIdentity) after the last \
                 reconciliation of the shoot had ended, so that its processes may go by the settings of before (status.ownerChecks has \
                 other terms); undo the edit"
            ),
        });
    }
    let reported = entry.is_some_and(|entry| entry.servers_named.is_some());
    (!reported && !placement::is_asleep_on_request(shoot)).then(|| {
        format!(
            "the process beside etcd in seed {from} has not reported which DNS servers it asks (status.ownerChecks has no servers)"
        )
    })
}

#[cfg(test)]
#[path = "servers_tests.rs"]
mod tests;
