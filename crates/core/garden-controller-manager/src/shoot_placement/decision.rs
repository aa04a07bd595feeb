//! The obstacles to the creation of a new shoot: pure decisions.

use api::{
    gardencore::{CloudProfile, Seed, Shoot},
    meta::{ErrorCode, LastError, LastOperation, LastOperationState, LastOperationType},
    text::one_line,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use placement::{seed_choice, unreserved_domain};
use serde_json::{Value, json};

/// The begin of the report of each refused domain.
const OF_DOMAIN: &str = "spec.dns.domain ";

/// Whether no gardenlet has acted on the shoot yet.
#[must_use]
pub fn is_unplaced(shoot: &Shoot) -> bool {
    let status = shoot.status.as_ref();
    let nobody =
        status.is_none_or(|s| s.seed_name.as_deref().unwrap_or_default().is_empty() && s.uid.is_empty());
    let untouched = status
        .and_then(|s| s.last_operation.as_ref())
        .is_none_or(|o| o.type_ == LastOperationType::Create && o.state == LastOperationState::Pending);
    nobody && untouched && shoot.metadata.deletion_timestamp.is_none()
}

/// Obstacle and remedy for a shoot that is not placed. `seed` and `profile`: the Seed and the CloudProfile of
/// the shoot, if they exist. The gardenlet takes no Shoot with an obstacle.
#[must_use]
pub fn obstacle(shoot: &Shoot, seed: Option<&Seed>, profile: Option<&CloudProfile>) -> Option<String> {
    let Some(name) = shoot.spec.seed_name.as_deref().filter(|name| !name.is_empty()) else {
        return Some(
            "no seed is chosen, and this version has no scheduler: set spec.seedName to one of the seeds"
                .into(),
        );
    };
    match seed {
        None => Some(format!(
            "there is no seed {name}: register it, or correct spec.seedName"
        )),
        Some(seed) => seed_choice::obstacle_to_creation(shoot, seed, profile),
    }
}

/// Whether the status reports that the domain of the Shoot is refused. Controller `shoot-domain` reports the
/// refusal, and the reservation ends the report.
pub(super) fn is_domain_refused(shoot: &Shoot) -> bool {
    unreserved_domain(shoot).is_some() && errors(shoot).any(|error| error.description.starts_with(OF_DOMAIN))
}

/// The status that reports a refused domain. `None` if the status is up to date, reports an obstacle of the
/// seed, or belongs to a gardenlet.
pub(crate) fn status_of_refused_domain(shoot: &Shoot, why: &str, now: Time) -> Option<Value> {
    let is_reported = is_domain_refused(shoot) || errors(shoot).next().is_none();
    (is_unplaced(shoot) && is_reported)
        .then(|| status(shoot, Some(why), now))
        .flatten()
}

fn errors(shoot: &Shoot) -> impl Iterator<Item = &LastError> {
    shoot.status.iter().flat_map(|status| &status.last_errors)
}

/// The status that reports the obstacle, or removes the report; `None` if the status is up to date.
pub(super) fn status(shoot: &Shoot, obstacle: Option<&str>, now: Time) -> Option<Value> {
    let told = shoot.status.as_ref().and_then(|s| s.last_operation.as_ref());
    // A member writes parts of the text.
    let obstacle = obstacle.map(one_line);
    let (description, errors) = match (obstacle, told) {
        (Some(obstacle), _) => {
            let error = LastError {
                description: obstacle.clone().into_owned(),
                task_id: None,
                codes: vec![ErrorCode::ErrConfigurationProblem],
                last_update_time: Some(now.clone()),
            };
            (
                format!("Creation of Shoot cluster cannot start: {obstacle}."),
                Some(vec![error]),
            )
        }
        (None, Some(_)) => {
            let seed = shoot.spec.seed_name.clone().unwrap_or_default();
            (format!("Waiting for the gardenlet of seed {seed}."), None)
        }
        (None, None) => return None,
    };
    if told.is_some_and(|told| told.description == description) {
        return None;
    }
    let operation = LastOperation {
        description,
        last_update_time: now,
        progress: 0,
        state: LastOperationState::Pending,
        type_: LastOperationType::Create,
    };
    Some(json!({ "lastOperation": operation, "lastErrors": errors }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::{SeedSpec, ShootSpec};

    use super::*;

    fn now() -> Time {
        Time(jiff::Timestamp::UNIX_EPOCH)
    }

    fn shoot(seed: Option<&str>) -> Shoot {
        Shoot::new(
            "web",
            ShootSpec {
                seed_name: seed.map(str::to_owned),
                ..ShootSpec::default()
            },
        )
    }

    #[test]
    fn each_obstacle_says_what_to_do() {
        assert!(
            obstacle(&shoot(None), None, None)
                .unwrap()
                .contains("set spec.seedName")
        );
        assert!(
            obstacle(&shoot(Some("")), None, None)
                .unwrap()
                .contains("set spec.seedName")
        );
        let unknown = obstacle(&shoot(Some("x")), None, None);
        assert!(unknown.unwrap().contains("no seed x"));
        let mut seed = Seed::new("a", SeedSpec::default());
        assert_eq!(obstacle(&shoot(Some("a")), Some(&seed), None), None);
        seed.metadata.deletion_timestamp = Some(now());
        assert!(
            obstacle(&shoot(Some("a")), Some(&seed), None)
                .unwrap()
                .contains("being deleted")
        );
    }

    #[test]
    fn a_seed_that_may_not_host_the_shoot_is_an_obstacle() {
        let (mut shoot, mut seed) = (shoot(Some("a")), Seed::new("a", SeedSpec::default()));
        seed.spec.taints = serde_json::from_value(json!([{"key": "protected"}])).unwrap();
        let why = obstacle(&shoot, Some(&seed), None).unwrap();
        assert!(why.contains("has the taint protected"), "{why}");
        shoot.spec.tolerations = serde_json::from_value(json!([{"key": "protected"}])).unwrap();
        assert_eq!(obstacle(&shoot, Some(&seed), None), None);
        let selector = json!({"matchLabels": {"kind": "edge"}});
        let spec = json!({"type": "t", "regions": [], "kubernetes": {}, "seedSelector": selector});
        let profile = CloudProfile::new("p", serde_json::from_value(spec).unwrap());
        let why = obstacle(&shoot, Some(&seed), Some(&profile)).unwrap();
        assert!(why.contains("CloudProfile p"), "{why}");
        shoot.spec.seed_selector = serde_json::from_value(selector).unwrap();
        let why = obstacle(&shoot, Some(&seed), None).unwrap();
        assert!(why.contains("spec.seedSelector of the shoot"), "{why}");
    }

    #[test]
    fn it_is_told_once_and_taken_back() {
        let mut shoot = shoot(Some("x"));
        assert_eq!(status(&shoot, None, now()), None);
        let body = status(&shoot, Some("there is no seed x"), now()).unwrap();
        assert_eq!(
            body["lastErrors"][0]["codes"],
            json!(["ERR_CONFIGURATION_PROBLEM"])
        );
        shoot.status = Some(serde_json::from_value(body).unwrap());
        assert!(is_unplaced(&shoot));
        assert_eq!(status(&shoot, Some("there is no seed x"), now()), None);
        let body = status(&shoot, None, now()).unwrap();
        assert_eq!(body["lastErrors"], Value::Null);
        assert_eq!(
            body["lastOperation"]["description"],
            "Waiting for the gardenlet of seed x."
        );
    }

    #[test]
    fn a_refused_domain_is_reported_until_the_reservation() {
        let mut shoot = shoot(Some("x"));
        let named = json!({"domain": "web.customer.test"});
        shoot.spec.dns = Some(serde_json::from_value(named).unwrap());
        let why = "spec.dns.domain web.customer.test is taken";
        let report = |shoot: &Shoot| status_of_refused_domain(shoot, why, now());
        assert!(!is_domain_refused(&shoot));
        let body = report(&shoot).unwrap();
        assert_eq!(body["lastErrors"][0]["description"], why);
        shoot.status = Some(serde_json::from_value(body).unwrap());
        assert!(is_domain_refused(&shoot));
        assert_eq!(report(&shoot), None, "once");
        shoot.status.as_mut().unwrap().reserved_domain = Some("web.customer.test".to_owned());
        assert!(!is_domain_refused(&shoot));

        let obstacle = status(&shoot, Some("there is no seed x"), now()).unwrap();
        shoot.status = Some(serde_json::from_value(obstacle).unwrap());
        assert!(!is_domain_refused(&shoot));
        assert_eq!(report(&shoot), None, "the seed comes first");
        shoot.status = Some(serde_json::from_value(json!({"seedName": "x", "uid": "u"})).unwrap());
        assert_eq!(report(&shoot), None, "a gardenlet has the Shoot");
    }

    #[test]
    fn a_shoot_that_a_gardenlet_has_acted_on_is_left_alone() {
        let mut touched = shoot(Some("x"));
        touched.status = Some(serde_json::from_value(json!({"seedName": "x", "uid": "u"})).unwrap());
        assert!(!is_unplaced(&touched));
        let mut deleted = shoot(Some("x"));
        deleted.metadata.deletion_timestamp = Some(now());
        assert!(!is_unplaced(&deleted));
    }
}
