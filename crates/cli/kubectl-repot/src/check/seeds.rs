//! Checks of each seed: the gardenlet, the system components, the edge, the bucket, DNS, owner checks, clock
//! and certificate, by the reports in the garden.

use std::collections::BTreeMap;

use api::{
    constants::{
        SEED_LEASE_NAMESPACE,
        condition::{
            BACKUP_BUCKETS_READY, EDGE_ADDRESS_READY, EMERGENCY_STOP_SHOOT_RECONCILIATIONS, EXTENSIONS_READY,
            GARDENLET_READY, OWNER_SERVERS_AGREE, SEED_SYSTEM_COMPONENTS_HEALTHY,
        },
    },
    gardencore::{Seed, SeedStatus},
    meta::{Condition, ConditionStatus, find_condition},
};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{client::Cluster, clock};

use super::report::{CheckGroup, CheckLine};
use crate::{
    failure::Failure,
    session::Session,
    version::{PLUGIN, is_same_minor},
};

/// Enough time for an operator to issue a certificate. Equal to the time of the alert.
const EXPIRES_SOON: SignedDuration = SignedDuration::from_hours(30 * 24);
/// A skew of the clock that no request explains.
const SKEW_NOTICED: SignedDuration = SignedDuration::from_secs(5);
/// From this skew on, servers may refuse tokens and certificates of the seed.
const SKEW_HARMFUL: SignedDuration = SignedDuration::from_secs(60);

/// The checks of all seeds, a group for each seed.
pub(super) async fn check(session: &Session) -> Vec<CheckGroup> {
    let all = ListParams::default();
    let seeds: Api<Seed> = session.garden().cluster_wide();
    let seeds = match Box::pin(session.request("Seeds cannot be listed", seeds.list(&all))).await {
        Ok(seeds) => seeds.items,
        Err(failure) => return vec![CheckGroup::new("seeds", vec![CheckLine::unreadable(&failure)])],
    };
    if seeds.is_empty() {
        let line = CheckLine::warn("no Seed is registered", "install chart seed in each seed");
        return vec![CheckGroup::new("seeds", vec![line])];
    }
    let leases: Api<Lease> = session.garden().namespaced(SEED_LEASE_NAMESPACE);
    let doing = format!("Leases in namespace {SEED_LEASE_NAMESPACE} cannot be listed");
    let leases = Box::pin(session.request(&doing, leases.list(&all))).await;
    let leases: Result<BTreeMap<String, Lease>, Failure> = leases.map(|list| {
        let named = list.items.into_iter().map(|lease| (lease.name_any(), lease));
        named.collect()
    });
    let now = clock::now();
    let groups = seeds.iter().map(|seed| {
        let name = seed.name_any();
        let mut lines = judge_seed(seed, now);
        lines.push(match &leases {
            Ok(leases) => judge_clock(leases.get(&name)),
            Err(failure) => CheckLine::unreadable(failure),
        });
        CheckGroup::new(format!("seed {name}"), lines)
    });
    groups.collect()
}

/// The checks that the Seed alone answers.
fn judge_seed(seed: &Seed, now: Timestamp) -> Vec<CheckLine> {
    let none = SeedStatus::default();
    let status = seed.status.as_ref().unwrap_or(&none);
    let name = seed.name_any();
    let required =
        |type_: &str, remedy: &str| judge_condition(find_condition(&status.conditions, type_), type_, remedy);
    let reported = |type_: &str, remedy: &str| {
        let condition = find_condition(&status.conditions, type_)?;
        Some(judge_condition(Some(condition), type_, remedy))
    };
    let mut lines = vec![
        required(
            GARDENLET_READY,
            "check the pod of the gardenlet, and the kubeconfig of the gardenlet for the garden",
        ),
        judge_version(status),
        required(
            SEED_SYSTEM_COMPONENTS_HEALTHY,
            "check the Deployments that the sentence names, in the seed",
        ),
    ];
    // A gardenlet of a former version does not report the address.
    lines.extend(reported(
        EDGE_ADDRESS_READY,
        "give the Service of the edge an address: docs/operate/install-requirements.md#address-of-the-edge",
    ));
    lines.extend(reported(
        EXTENSIONS_READY,
        "check the ControllerInstallations of the seed",
    ));
    lines.push(if seed.spec.backup.is_some() {
        required(
            BACKUP_BUCKETS_READY,
            "check status.lastError of the BackupBucket of the seed (`kubectl get backupbucket`)",
        )
    } else {
        CheckLine::warn(
            "the Seed has no spec.backup, so that no shoot moves to or from the seed",
            "give the Seed a spec.backup with a store that supports conditional writes",
        )
    });
    lines.push(judge_dns(seed));
    lines.push(judge_owner_checks(seed));
    lines.extend(reported(
        OWNER_SERVERS_AGREE,
        "give all Seeds the same spec.settings.ownerChecks.authorities",
    ));
    if find_condition(&status.conditions, EMERGENCY_STOP_SHOOT_RECONCILIATIONS).is_some() {
        lines.push(CheckLine::warn(
            "an emergency stop holds back reconciliations and moves",
            format!("kubectl annotate seed {name} shoot.gardener.cloud/emergency-stop-reconciliations-"),
        ));
    }
    if seed.spec.is_cordoned() {
        lines.push(CheckLine::warn(
            "the seed is cordoned",
            format!("kubectl repot uncordon {name}"),
        ));
    }
    lines.push(judge_certificate(status, now));
    lines
}

fn judge_condition(condition: Option<&Condition>, type_: &str, remedy: &str) -> CheckLine {
    let Some(condition) = condition else {
        return CheckLine::fail(format!("condition {type_} was never reported"), remedy);
    };
    let sentence = format!(
        "condition {type_} is {:?}: {}",
        condition.status, condition.message
    );
    match condition.status {
        ConditionStatus::True => CheckLine::ok(sentence),
        ConditionStatus::Progressing => CheckLine::warn(sentence, "repeat the command in some minutes"),
        ConditionStatus::False | ConditionStatus::Unknown => CheckLine::fail(sentence, remedy),
    }
}

fn judge_version(status: &SeedStatus) -> CheckLine {
    let version = status.gardener.as_ref().map(|gardener| gardener.version.as_str());
    match version {
        Some(version) if is_same_minor(version) => {
            CheckLine::ok(format!("the gardenlet has version {version}"))
        }
        Some(version) => CheckLine::warn(
            format!("the gardenlet has version {version}, and the plugin has version {PLUGIN}"),
            "use the plugin of the garden's version; during an upgrade, upgrade the garden first and then each gardenlet",
        ),
        None => CheckLine::warn(
            "the gardenlet reports no version",
            "check the pod of the gardenlet",
        ),
    }
}

fn judge_dns(seed: &Seed) -> CheckLine {
    match &seed.spec.dns.internal {
        Some(internal) => CheckLine::ok(format!(
            "names of shoots are below {} (provider {})",
            internal.domain, internal.type_
        )),
        None => CheckLine::warn(
            "the Seed has no spec.dns.internal, so that the seed has no owner records",
            "give the Seed a domain and a DNS provider in spec.dns.internal",
        ),
    }
}

fn judge_owner_checks(seed: &Seed) -> CheckLine {
    let fence = seed
        .status
        .as_ref()
        .and_then(|status| status.owner_check_fence_seconds);
    let fence = fence.map_or_else(String::new, |seconds| format!(", with a fence of {seconds} s"));
    if seed.spec.checks_owners() {
        CheckLine::ok(format!("owner checks are on{fence}"))
    } else {
        CheckLine::warn(
            "owner checks are off, so that each takeover from the seed is refused",
            "prepare owner checks as in docs/operate/dead-seed.md, and set spec.settings.ownerChecks.enabled",
        )
    }
}

fn judge_certificate(status: &SeedStatus, now: Timestamp) -> CheckLine {
    let Some(expiry) = &status.client_certificate_expiration_timestamp else {
        return CheckLine::ok("the gardenlet reports no client certificate, as with a token");
    };
    let remedy = "give the gardenlet a kubeconfig with a new certificate: docs/operate/install.md#renew-the-certificate-of-a-gardenlet";
    let rest = expiry.0.duration_since(now);
    let days = rest.as_hours() / 24;
    if rest.is_negative() {
        CheckLine::fail(
            format!("the certificate of the gardenlet expired at {}", expiry.0),
            remedy,
        )
    } else if rest < EXPIRES_SOON {
        CheckLine::warn(
            format!("the certificate of the gardenlet expires in {days} days"),
            remedy,
        )
    } else {
        CheckLine::ok(format!("the certificate of the gardenlet expires in {days} days"))
    }
}

/// Compares the clock of the gardenlet with the clock of the garden: the gardenlet writes the time of the
/// renewal, and the API server records the time of the same write.
fn judge_clock(lease: Option<&Lease>) -> CheckLine {
    let renewed = lease.and_then(|lease| lease.spec.as_ref()?.renew_time.as_ref());
    let managed = lease.and_then(|lease| lease.metadata.managed_fields.as_ref());
    let written = managed.and_then(|all| all.iter().filter_map(|entry| entry.time.as_ref()).max());
    let (Some(renewed), Some(written)) = (renewed, written) else {
        return CheckLine::warn(
            "the clock of the gardenlet is not known, because the seed has no Lease",
            "check the pod of the gardenlet",
        );
    };
    let skew = renewed.0.duration_since(written.0).abs();
    let seconds = skew.as_secs();
    let remedy = "check the time service (NTP) of the nodes of the seed and of the garden";
    let sentence = format!("the clocks of the gardenlet and of the garden differ by {seconds} s");
    if skew >= SKEW_HARMFUL {
        CheckLine::fail(sentence, remedy)
    } else if skew >= SKEW_NOTICED {
        CheckLine::warn(sentence, remedy)
    } else {
        CheckLine::ok(sentence)
    }
}

#[cfg(test)]
#[path = "seeds_tests.rs"]
mod tests;
