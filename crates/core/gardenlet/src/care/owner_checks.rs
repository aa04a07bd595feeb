//! The owner checks of the processes of a shoot in this seed, in two places. The entry of the seed in
//! `status.ownerChecks` is read by a destination when this seed is dead. Without the condition
//! `OwnerChecksComplete` no seed takes the shoot over. Pure.

use std::time::Duration;

use ::ownership::Terms;
use api::{
    constants::condition::{MANAGER_WITHOUT_OWNER_CHECK, OWNER_CHECKS_COMPLETE, TERMS_NOT_APPLIED},
    druid::{Etcd, ReportedOwnerCheck},
    gardencore::{
        Seed, Shoot, ShootStatus,
        shoot::{OwnershipPhase, SeedOwnerCheck},
    },
    meta::{Condition, ConditionStatus},
};
use k8s_openapi::{api::apps::v1::Deployment, apimachinery::pkg::apis::meta::v1::Time};
use kube::ResourceExt;
use parts::AppliedTerms;

use super::observation::Observation;

/// Name of the Etcd that is backed up.
const ETCD_MAIN: &str = "etcd-main";
/// Part of the name of every manager of machines or of a cloud.
const MANAGER: &str = "controller-manager";
/// Acts only on the API of the shoot, and the gate in front of etcd closes that API.
const MANAGER_OF_THE_API: &str = "kube-controller-manager";
/// A manager with this flag checks the owner of the shoot before and during each action (crate
/// `owner-checks`).
const OWNER_FLAG: &str = "--owner-name=";
/// Maximum that the API accepts.
const MOST_UNCHECKED: usize = 32;

/// The observation in the seed. The entry keeps its terms, since the terms are recorded at the end of a flow.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ObservedCheck {
    reported: Option<ReportedOwnerCheck>,
    fence_seconds: Option<i64>,
    unchecked: Vec<String>,
    /// The terms that the Seed configures now. `None`: the seed does not check owners.
    wanted: Option<String>,
}

impl ObservedCheck {
    pub(super) fn new(shoot: &Shoot, seed: &Seed, etcds: &[Etcd], deployments: &[Deployment]) -> Self {
        let main = etcds.iter().find(|etcd| etcd.name_any() == ETCD_MAIN);
        let reported = main.and_then(|etcd| etcd.status.as_ref()?.owner_check.clone());
        let epoch = shoot.status.as_ref().map_or(1, ShootStatus::epoch);
        Self {
            fence_seconds: needed_fence(seed, reported.as_ref()),
            reported,
            unchecked: unchecked(deployments),
            wanted: AppliedTerms::of_seed(seed, epoch),
        }
    }

    /// The entries after this observation. `None` if no write is needed. Either the seed has never checked
    /// the owner of this shoot, or the seed has not opened the data of the shoot yet. In the second case the
    /// entry of the earlier residency counts.
    pub(super) fn entries(&self, status: &ShootStatus, seed: &str) -> Option<Vec<SeedOwnerCheck>> {
        let before = status.owner_check_in(seed);
        let phase = status.ownership.as_ref().and_then(|ownership| ownership.phase);
        let is_opened = !matches!(phase, Some(OwnershipPhase::Claiming | OwnershipPhase::Opening));
        if !is_opened || (before.is_none() && self.wanted.is_none()) {
            return None;
        }
        let mut entry = before.cloned().unwrap_or_default();
        seed.clone_into(&mut entry.seed_name);
        entry.epoch = status.epoch();
        entry.fence_seconds = self
            .fence_seconds
            .max(entry.fence_seconds.filter(|_| self.wanted.is_none()));
        entry.unchecked.clone_from(&self.unchecked);
        if let Some(reported) = &self.reported {
            entry.servers.clone_from(&reported.servers);
            entry.servers_named = Some(reported.servers_named);
            entry.host_clock.clone_from(&reported.host_clock);
        }
        let entries = status.owner_checks_with(entry);
        (entries != status.owner_checks).then_some(entries)
    }

    /// The condition `OwnerChecksComplete`; `None` where the seed does not check owners.
    fn complete(&self, status: &ShootStatus, seed: &str) -> Option<Observation> {
        let wanted = self.wanted.as_ref()?;
        let applied = status.owner_check_in(seed).and_then(|entry| entry.terms.as_ref());
        if applied != Some(wanted) {
            let message = format!(
                "No reconciliation has ended since the owner terms of seed {seed} changed (spec.settings.ownerChecks, spec.dns.internal \
                 or the ownership epoch), so that processes may ask other servers or none: annotate the Shoot with \
                 gardener.cloud/operation=reconcile. Until a reconciliation has succeeded, no seed takes the shoot over."
            );
            return Some(Observation::new(
                ConditionStatus::False,
                TERMS_NOT_APPLIED,
                message,
            ));
        }
        if !self.unchecked.is_empty() {
            let message = format!(
                "These managers act without asking who owns the shoot, so that no fence stops them: {}. Use a version of the provider \
                 whose managers know the flags --owner-*.",
                self.unchecked.join(", ")
            );
            return Some(Observation::new(
                ConditionStatus::False,
                MANAGER_WITHOUT_OWNER_CHECK,
                message,
            ));
        }
        let message = "The process beside etcd and all managers of machines and clouds run with the present owner terms. Actuators of providers \
                       are not seen: they check the owner if they are built with the library `extension`.";
        Some(Observation::new(ConditionStatus::True, "TermsApplied", message))
    }

    /// Writes the condition into the conditions of a shoot without a threshold: a takeover relies on the
    /// condition.
    pub(super) fn set_condition(
        &self,
        status: &ShootStatus,
        seed: &str,
        now: &Time,
        conditions: &mut Vec<Condition>,
    ) {
        match self.complete(status, seed) {
            Some(found) => Condition::new(
                OWNER_CHECKS_COMPLETE,
                found.status,
                found.reason,
                &found.message,
                now.clone(),
            )
            .merge_into(conditions),
            None => conditions.retain(|one| one.type_ != OWNER_CHECKS_COMPLETE),
        }
    }
}

/// The longest of three fences: of the Seed now, of the Seed while the seed had shoots, and of the process
/// beside etcd.
fn needed_fence(seed: &Seed, reported: Option<&ReportedOwnerCheck>) -> Option<i64> {
    let given = seed.spec.owner_checks().and_then(|checks| {
        let fence = owner_checks::needed_fence(checks, Terms::default()).ok()?;
        rounded_up(fence)
    });
    let told = seed
        .status
        .as_ref()
        .and_then(|status| status.owner_check_fence_seconds);
    let least = reported.and_then(|reported| reported.least_fence_seconds);
    given.max(told).max(least)
}

fn rounded_up(time: Duration) -> Option<i64> {
    i64::try_from(time.as_millis().div_ceil(1000)).ok()
}

/// The Deployments that act on machines or on a cloud and lack the flag for the owner check. A Deployment
/// without wanted pods cannot act.
fn unchecked(deployments: &[Deployment]) -> Vec<String> {
    let mut names: Vec<_> = deployments
        .iter()
        .filter(|deployment| is_manager(&deployment.name_any()))
        .filter(|deployment| wants_pods(deployment) && !asks(deployment))
        .map(|deployment| format!("Deployment {}", deployment.name_any()))
        .collect();
    names.sort();
    names.truncate(MOST_UNCHECKED);
    names
}

fn is_manager(name: &str) -> bool {
    name.contains(MANAGER) && name != MANAGER_OF_THE_API
}

fn wants_pods(deployment: &Deployment) -> bool {
    let spec = deployment.spec.as_ref();
    spec.and_then(|spec| spec.replicas).unwrap_or(1) > 0
}

fn asks(deployment: &Deployment) -> bool {
    let pod = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.template.spec.as_ref());
    let mut containers = pod.into_iter().flat_map(|pod| &pod.containers);
    containers.any(|container| {
        let mut words = container.args.iter().chain(&container.command).flatten();
        words.any(|word| word.starts_with(OWNER_FLAG))
    })
}

#[cfg(test)]
#[path = "owner_checks_tests.rs"]
mod tests;
