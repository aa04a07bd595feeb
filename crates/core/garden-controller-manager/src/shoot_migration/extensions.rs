//! Checks whether the destination has the extensions that the shoot needs. Pure.
//!
//! A garden without any ControllerRegistration has its extensions installed by other means, so their state is
//! unknown, and there is no obstacle. With the first registration every needed extension must be registered,
//! even if without a deployment.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    gardencore::{ControllerInstallation, ControllerRegistration, Seed, Shoot},
    meta::{ConditionStatus, find_condition},
};
use kube::ResourceExt;

use crate::controller_registration::{
    answers, fits,
    need::{Need, Needs, of_seed, of_shoot},
    seed_of,
};

/// Conditions that an installation must have. `Progressing` says only that pods are being replaced.
const READY: [&str; 3] = ["Valid", "Installed", "Healthy"];

/// The known extensions of the garden.
#[derive(Clone, Debug, Default)]
pub struct Extensions {
    /// All ControllerRegistrations.
    pub registrations: Vec<Arc<ControllerRegistration>>,
    /// At least the installations of the destination.
    pub installations: Vec<ControllerInstallation>,
}

/// A reason, and a description of the missing extension.
pub(super) type ExtensionObstacle = (&'static str, String);

impl Extensions {
    /// The extension that the destination lacks, if any.
    pub(super) fn obstacle(&self, shoot: &Shoot, seed: &Seed) -> Option<ExtensionObstacle> {
        if self.registrations.is_empty() {
            return None;
        }
        let mut needs: Needs = of_shoot(shoot, &self.registrations);
        needs.extend(of_seed(seed, &self.registrations));
        let name = seed.name_any();
        let served = needs.iter().map(|need| (need, self.who_answers(need, seed)));
        let (mut lacks, mut waits) = (Vec::new(), BTreeMap::new());
        for (need, registration) in served {
            match registration {
                None => lacks.push(need.to_string()),
                Some(registration) => {
                    if let Some(why) = self.not_ready(&registration, &name) {
                        waits.insert(registration, why);
                    }
                }
            }
        }
        if !lacks.is_empty() {
            let message = format!(
                "Seed {name} cannot serve {}: no ControllerRegistration that may be in this seed answers for it; register the extension, or let its seedSelector match the seed",
                lacks.join(", ")
            );
            return Some(("DestinationLacksExtensions", message));
        }
        let waits: Vec<_> = waits
            .into_iter()
            .map(|(name, why)| format!("{name} {why}"))
            .collect();
        (!waits.is_empty()).then(|| {
            let message = format!(
                "Seed {name} does not have all extensions of the shoot yet ({}): the move begins once its ControllerInstallations are Valid, Installed and Healthy",
                waits.join("; ")
            );
            ("DestinationExtensionsNotReady", message)
        })
    }

    fn who_answers(&self, need: &Need, seed: &Seed) -> Option<String> {
        let mut all = self.registrations.iter();
        let found = all.find(|registration| answers(registration, need) && fits(registration, seed));
        found.map(|registration| registration.name_any())
    }

    /// Why the registration of this name does not work in the seed yet.
    fn not_ready(&self, registration: &str, seed: &str) -> Option<String> {
        let mut all = self.installations.iter();
        let found = all.find(|installation| {
            seed_of(installation) == Some(seed)
                && installation.spec.registration_ref.name.as_deref() == Some(registration)
        });
        let Some(found) = found else {
            return Some("is not installed yet".to_owned());
        };
        if found.metadata.deletion_timestamp.is_some() {
            return Some("is being taken away, and comes again after that".to_owned());
        }
        let conditions = found
            .status
            .as_ref()
            .map(|status| status.conditions.as_slice())
            .unwrap_or_default();
        READY
            .iter()
            .find_map(|type_| match find_condition(conditions, type_) {
                Some(condition) if condition.status == ConditionStatus::True => None,
                Some(condition) => {
                    let message = condition.message.trim_end_matches('.');
                    Some(format!("is not {type_}: {message}"))
                }
                None => Some(format!("is not reported to be {type_} yet")),
            })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use serde_json::{Value, json};

    use super::*;

    fn shoot() -> Shoot {
        let spec =
            json!({"region": "here", "provider": {"type": "metal"}, "kubernetes": {"version": "1.34.4"}});
        Shoot::new("web", serde_json::from_value(spec).unwrap())
    }

    fn seed() -> Seed {
        let mut seed = Seed::new("b", api::gardencore::SeedSpec::default());
        seed.metadata.labels = Some([("kind".to_owned(), "edge".to_owned())].into());
        seed
    }

    fn registration(name: &str, kinds: &[&str], selected: &str) -> Arc<ControllerRegistration> {
        let resources: Vec<Value> = kinds
            .iter()
            .map(|kind| json!({"kind": kind, "type": "metal"}))
            .collect();
        let selector = json!({"matchLabels": {"kind": selected}});
        let spec = json!({"resources": resources, "deployment": {"seedSelector": selector}});
        Arc::new(ControllerRegistration::new(
            name,
            serde_json::from_value(spec).unwrap(),
        ))
    }

    fn installation(of: &str, seed: &str, statuses: [&str; 3]) -> ControllerInstallation {
        let spec = json!({"registrationRef": {"name": of}, "seedRef": {"name": seed}});
        let mut found = ControllerInstallation::new(of, serde_json::from_value(spec).unwrap());
        let time = "2026-01-01T00:00:00Z";
        let conditions: Vec<Value> = READY
            .iter()
            .zip(statuses)
            .map(|(type_, status)| {
                json!({"type": type_, "status": status, "reason": "R", "message": "so it is.",
                    "lastTransitionTime": time, "lastUpdateTime": time})
            })
            .collect();
        found.status = serde_json::from_value(json!({"conditions": conditions})).unwrap();
        found
    }

    #[track_caller]
    fn obstacle(
        registrations: &[Arc<ControllerRegistration>],
        installations: &[ControllerInstallation],
        expected: Option<(&str, &str)>,
    ) {
        let known = Extensions {
            registrations: registrations.to_vec(),
            installations: installations.to_vec(),
        };
        match (known.obstacle(&shoot(), &seed()), expected) {
            (None, None) => {}
            (Some((reason, message)), Some((wanted, words))) => {
                assert_eq!(reason, wanted, "{message}");
                assert!(message.contains(words), "{message}");
            }
            (got, wanted) => panic!("{got:?} instead of {wanted:?}"),
        }
    }

    const BOTH: &[&str] = &["Infrastructure", "ControlPlane"];

    #[test]
    fn a_garden_without_registrations_knows_nothing_and_refuses_nothing() {
        obstacle(&[], &[], None);
    }

    #[test]
    fn what_nobody_can_serve_there_is_named() {
        let lacks = |registrations: &[_], words| {
            obstacle(registrations, &[], Some(("DestinationLacksExtensions", words)));
        };
        lacks(
            &[registration("metal", BOTH, "core")],
            "serve ControlPlane of type metal, Infrastructure of type metal:",
        );
        lacks(
            &[registration("metal", &["Infrastructure"], "edge")],
            "serve ControlPlane of type metal:",
        );
        lacks(
            &[registration("other", &["Network"], "edge")],
            "let its seedSelector match the seed",
        );
        let mut standby = registration("metal", BOTH, "edge");
        for resource in &mut Arc::make_mut(&mut standby).spec.resources {
            resource.primary = Some(false);
        }
        lacks(&[standby], "ControlPlane of type metal");
    }

    #[test]
    fn what_is_coming_is_waited_for() {
        let registrations = [registration("metal", BOTH, "edge")];
        let waits = |installations: &[_], words| {
            obstacle(
                &registrations,
                installations,
                Some(("DestinationExtensionsNotReady", words)),
            );
        };
        waits(&[], "metal is not installed yet");
        waits(
            &[installation("metal", "a", ["True"; 3])],
            "metal is not installed yet",
        );
        waits(
            &[installation("metal", "b", ["False", "True", "True"])],
            "metal is not Valid: so it is)",
        );
        waits(
            &[installation("metal", "b", ["True", "False", "True"])],
            "metal is not Installed",
        );
        waits(
            &[installation("metal", "b", ["True", "True", "Unknown"])],
            "metal is not Healthy",
        );
        let mut silent = installation("metal", "b", ["True"; 3]);
        silent.status = None;
        waits(&[silent], "not reported to be Valid yet");
        let mut going = installation("metal", "b", ["True"; 3]);
        going.metadata.deletion_timestamp =
            Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
        waits(&[going], "being taken away");
        obstacle(&registrations, &[installation("metal", "b", ["True"; 3])], None);
    }
}
