//! Selects the registrations of a seed, and the installations that must be written or deleted for the
//! selection. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use api::{
    constants::seed_name_label,
    gardencore::{
        ControllerDeploymentPolicy, ControllerInstallation, ControllerInstallationSpec,
        ControllerInstallationStatus, ControllerRegistration, Seed,
    },
    meta::{Condition, ConditionStatus, ObjectReference, find_condition},
};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt as _},
};

use runtime::workload::rollout::checksum;

use super::need::{Need, Needs};
use crate::changes::trim_metadata;

/// Condition of an installation: the seed has extension objects that the installation serves. The seed's
/// gardenlet writes the condition.
pub const REQUIRED: &str = "Required";
/// Longest name of an object.
const LONGEST_NAME: usize = 253;

/// Whether the registration is responsible for these objects. Only a primary registration (the default) is
/// responsible; secondary registrations stand by.
#[must_use]
pub fn answers(registration: &ControllerRegistration, need: &Need) -> bool {
    let mut resources = registration.spec.resources.iter();
    resources.any(|resource| {
        resource.kind == need.kind && resource.type_ == need.type_ && resource.primary != Some(false)
    })
}

/// Whether the registration may be installed in this seed. A registration that is being deleted is installed
/// in no further seed.
#[must_use]
pub fn fits(registration: &ControllerRegistration, seed: &Seed) -> bool {
    let deployment = registration.spec.deployment.as_ref();
    let selector = deployment.and_then(|deployment| deployment.seed_selector.clone());
    let selected = selector.is_none_or(|selector| {
        // An invalid selector selects no seed.
        Selector::try_from(selector).is_ok_and(|selector| selector.matches(seed.labels()))
    });
    selected && registration.metadata.deletion_timestamp.is_none()
}

/// The registrations that a seed must have, each with the name of its ControllerDeployment, if any.
#[must_use]
pub fn wanted(
    seed: &Seed,
    registrations: &[Arc<ControllerRegistration>],
    needs: &Needs,
    has_shoots: bool,
) -> BTreeMap<String, Option<String>> {
    use ControllerDeploymentPolicy::{Always, AlwaysExceptNoShoots, OnDemand};
    let goes = seed.metadata.deletion_timestamp.is_some();
    let chosen = registrations
        .iter()
        .filter(|registration| fits(registration, seed));
    let chosen = chosen.filter(|registration| {
        let deployment = registration.spec.deployment.as_ref();
        let anyway = match deployment
            .and_then(|deployment| deployment.policy)
            .unwrap_or(OnDemand)
        {
            OnDemand => false,
            Always => !goes,
            AlwaysExceptNoShoots => has_shoots,
        };
        let mut resources = registration.spec.resources.iter();
        anyway || resources.any(|resource| needs.contains(&Need::new(&resource.kind, &resource.type_)))
    });
    chosen
        .map(|registration| (registration.name_any(), deployment_of(registration)))
        .collect()
}

fn deployment_of(registration: &ControllerRegistration) -> Option<String> {
    let deployment = registration.spec.deployment.as_ref()?;
    deployment.deployment_refs.first().map(|found| found.name.clone())
}

/// The installations to write, and the unneeded installations.
#[derive(Debug, Default)]
pub struct Plan {
    /// New installations, and installations with a different deployment.
    pub write: Vec<ControllerInstallation>,
    /// Unneeded installations: no registration is wanted for them, and the seed has no extension object for
    /// the installation any more.
    pub release: Vec<Arc<ControllerInstallation>>,
}

/// Compares the wanted registrations of a seed with its installations.
#[must_use]
pub fn plan(
    seed: &str,
    wanted: &BTreeMap<String, Option<String>>,
    all: &[Arc<ControllerInstallation>],
) -> Plan {
    let mut plan = Plan::default();
    let mut there = BTreeSet::new();
    for installation in all
        .iter()
        .filter(|installation| seed_of(installation) == Some(seed))
    {
        let registration = name_of(&installation.spec.registration_ref);
        let goes = installation.metadata.deletion_timestamp.is_some();
        match wanted.get(registration) {
            // The installation is recreated after the deletion, which a watch reports.
            _ if goes => {}
            Some(deployment) => {
                let has = installation.spec.deployment_ref.as_ref().map(name_of);
                if has != deployment.as_deref() && !there.contains(registration) {
                    let name = installation.name_any();
                    plan.write
                        .push(object(&name, seed, registration, deployment.as_deref()));
                }
            }
            None if may_go(installation) => plan.release.push(Arc::clone(installation)),
            None => {}
        }
        there.insert(registration.to_owned());
    }
    let missing = wanted
        .iter()
        .filter(|(registration, _)| !there.contains(*registration));
    let missing = missing.map(|(registration, deployment)| {
        object(
            &name(registration, seed),
            seed,
            registration,
            deployment.as_deref(),
        )
    });
    plan.write.extend(missing);
    plan
}

/// Whether the seed's gardenlet reports that no extension object of the installation is left. Without a
/// report the installation stays.
#[must_use]
pub fn may_go(installation: &ControllerInstallation) -> bool {
    let status = installation.status.as_ref();
    let required = status.and_then(|status| find_condition(&status.conditions, REQUIRED));
    required.is_some_and(|condition| condition.status == ConditionStatus::False)
}

/// The seed that an installation is in.
#[must_use]
pub fn seed_of(installation: &ControllerInstallation) -> Option<&str> {
    installation.spec.seed_ref.as_ref().map(name_of)
}

/// Keeps the fields that the choice reads. A seed writes finalizers and the status, within the bounds of
/// policy `gardenlet-size`.
pub fn trim_installation(installation: &mut ControllerInstallation) {
    trim_metadata(&mut installation.metadata);
    if let Some(status) = &mut installation.status {
        let required = find_condition(&status.conditions, REQUIRED).cloned();
        *status = ControllerInstallationStatus {
            conditions: required
                .map(|required| Condition {
                    reason: String::new(),
                    message: String::new(),
                    codes: Vec::new(),
                    ..required
                })
                .into_iter()
                .collect(),
            provider_status: None,
        };
    }
}

fn name_of(reference: &ObjectReference) -> &str {
    reference.name.as_deref().unwrap_or_default()
}

/// The same name at each try, so that an installation that the cache does not show yet is not created twice.
fn name(registration: &str, seed: &str) -> String {
    let hash = checksum([(registration, seed)]);
    let suffix = format!("-{}", hash.get(..8).unwrap_or(&hash));
    let kept = registration
        .get(..LONGEST_NAME - suffix.len())
        .unwrap_or(registration);
    format!("{}{suffix}", kept.trim_end_matches(['-', '.']))
}

fn object(name: &str, seed: &str, registration: &str, deployment: Option<&str>) -> ControllerInstallation {
    let reference = |name: &str| ObjectReference {
        name: Some(name.to_owned()),
        ..ObjectReference::default()
    };
    let spec = ControllerInstallationSpec {
        registration_ref: reference(registration),
        seed_ref: Some(reference(seed)),
        deployment_ref: deployment.map(reference),
        ..ControllerInstallationSpec::default()
    };
    let mut object = ControllerInstallation::new(name, spec);
    object.metadata.labels = Some([(seed_name_label(seed), "true".to_owned())].into());
    object
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
