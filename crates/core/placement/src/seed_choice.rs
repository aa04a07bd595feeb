//! May a seed host a shoot at all? By the deletion, taints and labels of the Seed, and the selectors of Shoot
//! and CloudProfile. A takeover ignores taints and selectors, as the shoot would be lost without the
//! takeover. A destination in deletion is refused for a takeover, too, by `judge` in
//! `crates/core/garden-controller-manager/src/shoot_migration/preflight.rs`.
//!
//! Policy `charts/garden/files/policies/shoot-seed-choice.yaml` repeats the rules of Shoot and Seed for a new
//! Shoot that names a seed. `policies/seeds.rs` in the tests of garden-controller-manager compares the two.

use api::gardencore::{CloudProfile, Seed, Shoot, shoot::SeedSelector};
use kube::{
    ResourceExt,
    core::{Selector, SelectorExt as _},
};

/// A reason, and the start of a sentence: the remedy that all obstacles share completes the sentence.
pub type Obstacle = (&'static str, String);

/// The first obstacle. `profile`: the CloudProfile that the Shoot names, if there is one.
#[must_use]
pub fn obstacle(shoot: &Shoot, seed: &Seed, profile: Option<&CloudProfile>) -> Option<Obstacle> {
    deletion(seed)
        .or_else(|| untolerated_taint(shoot, seed))
        .or_else(|| unselected(shoot, seed, profile))
}

/// A new shoot would keep the Seed for ever.
fn deletion(seed: &Seed) -> Option<Obstacle> {
    seed.metadata.deletion_timestamp.as_ref()?;
    let message = format!(
        "Seed {} is being deleted and takes no new shoots: wait for a new Seed of this name",
        seed.name_any()
    );
    Some(("SeedInDeletion", message))
}

/// The obstacle to a creation in the seed, with the remedy.
#[must_use]
pub fn obstacle_to_creation(shoot: &Shoot, seed: &Seed, profile: Option<&CloudProfile>) -> Option<String> {
    let (_, sentence) = obstacle(shoot, seed, profile)?;
    Some(format!(
        "{sentence}, or delete this Shoot and create the Shoot with another seed"
    ))
}

/// As in Gardener: a taint without value is tolerated by key, a taint with a value by key and value.
fn untolerated_taint(shoot: &Shoot, seed: &Seed) -> Option<Obstacle> {
    let tolerations = &shoot.spec.tolerations;
    let taint = seed.spec.taints.iter().find(|taint| {
        !tolerations.iter().any(|toleration| {
            toleration.key == taint.key && (taint.value.is_none() || toleration.value == taint.value)
        })
    })?;
    let value = taint
        .value
        .as_ref()
        .map_or(String::new(), |value| format!("={value}"));
    let message = format!(
        "Seed {} has the taint {}{value}, which the shoot does not tolerate: add a toleration to spec.tolerations",
        seed.name_any(),
        taint.key
    );
    Some(("SeedTaintNotTolerated", message))
}

fn unselected(shoot: &Shoot, seed: &Seed, profile: Option<&CloudProfile>) -> Option<Obstacle> {
    let name = seed.name_any();
    if let Some(selector) = &shoot.spec.seed_selector
        && !matches(selector, seed)
    {
        let message = format!(
            "Seed {name} does not match spec.seedSelector of the shoot: change the selector, or label the seed"
        );
        return Some(("SeedSelectorDoesNotMatch", message));
    }
    let profile = profile?;
    let selector = profile.spec.seed_selector.as_ref()?;
    (!matches(selector, seed)).then(|| {
        let message = format!(
            "Seed {name} does not match spec.seedSelector of CloudProfile {}: change the selector, or label the seed",
            profile.name_any()
        );
        ("CloudProfileDoesNotSelectSeed", message)
    })
}

/// An unreadable selector selects no seed.
fn matches(selector: &SeedSelector, seed: &Seed) -> bool {
    let types = &selector.provider_types;
    let provider = &seed.spec.provider.type_;
    let has_type = types.is_empty() || types.iter().any(|type_| type_ == "*" || type_ == provider);
    has_type
        && Selector::try_from(selector.selector.clone()).is_ok_and(|selector| selector.matches(seed.labels()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::{SeedSpec, ShootSpec};
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};

    use super::*;

    #[test]
    fn a_seed_in_deletion_takes_no_new_shoot() {
        let (mut seed, shoot) = (
            Seed::new("a", SeedSpec::default()),
            Shoot::new("web", ShootSpec::default()),
        );
        assert_eq!(obstacle(&shoot, &seed, None), None);
        seed.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        let words = obstacle_to_creation(&shoot, &seed, None).unwrap();
        assert!(
            words.starts_with("Seed a is being deleted and takes no new shoots"),
            "{words}"
        );
    }
}
