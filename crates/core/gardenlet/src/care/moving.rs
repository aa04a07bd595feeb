//! The conditions of a shoot while a move stops the control plane in the source seed and starts the control
//! plane in the destination seed. Pure.
//!
//! A condition that holds is reported as such. A condition that does not hold, or cannot be checked, has
//! reason `Moving`. `APIServerAvailable` is `False` at once: the API server was stopped on purpose, so a
//! grace period would only delay the report.

use api::{
    constants::condition::{
        API_SERVER_AVAILABLE, CONTROL_PLANE_HEALTHY, EVERY_NODE_READY, MOVING, SYSTEM_COMPONENTS_HEALTHY,
    },
    gardencore::Shoot,
    meta::{Condition, ConditionStatus, find_condition},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use placement::{Journey, journey};

use super::{checks, observation::Observation};

/// The observation of a shoot, with the move as the reason where the shoot moves.
pub(super) fn explained_by_move(shoot: &Shoot, type_: &str, seen: Observation) -> Observation {
    if journey(shoot) == Journey::Settled {
        return seen;
    }
    let (status, sentence) = match (type_, seen.status) {
        (_, ConditionStatus::True) => return seen,
        (API_SERVER_AVAILABLE, _) => (ConditionStatus::False, API_STOPPED),
        (CONTROL_PLANE_HEALTHY, _) => (ConditionStatus::Progressing, PARTS_STOPPED),
        // Reports of the API server about nodes and objects count, also during a move.
        (_, ConditionStatus::Unknown) => (ConditionStatus::Unknown, NOT_CHECKED),
        _ => return seen,
    };
    let message = format!("{sentence} {}", seen.message);
    Observation {
        codes: seen.codes,
        ..Observation::new(status, MOVING, message)
    }
}

/// The conditions of a shoot whose API server a move has just stopped. Conditions that are not reported yet
/// are not added. `None` without a change, and for a shoot that sleeps, since such a shoot has no API server.
#[must_use]
pub fn without_api_server(shoot: &Shoot, now: &Time) -> Option<Vec<Condition>> {
    if checks::of_sleep(shoot).is_some() {
        return None;
    }
    let old = &shoot.status.as_ref()?.conditions;
    let mut conditions = old.clone();
    for (type_, status, sentence) in [
        (API_SERVER_AVAILABLE, ConditionStatus::False, API_STOPPED),
        (CONTROL_PLANE_HEALTHY, ConditionStatus::Progressing, PARTS_STOPPED),
        (EVERY_NODE_READY, ConditionStatus::Unknown, NOT_CHECKED),
        (SYSTEM_COMPONENTS_HEALTHY, ConditionStatus::Unknown, NOT_CHECKED),
    ] {
        let is_reported = |condition: &Condition| condition.status == status && condition.reason == MOVING;
        if find_condition(old, type_).is_some_and(|condition| !is_reported(condition)) {
            Condition::new(type_, status, MOVING, sentence, now.clone()).merge_into(&mut conditions);
        }
    }
    (conditions != *old).then_some(conditions)
}

const API_STOPPED: &str = "The API server is stopped while the control plane moves to another seed.";
const PARTS_STOPPED: &str =
    "Parts of the control plane are stopped while the control plane moves to another seed.";
const NOT_CHECKED: &str = "Nothing can be checked while the control plane moves to another seed.";

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use ConditionStatus::{False, Progressing, True, Unknown};
    use serde_json::{Value, json};

    use super::*;

    fn shoot(type_: &str, state: &str, conditions: &Value, asleep: bool) -> Shoot {
        serde_json::from_value(json!({"metadata": {"name": "web"},
            "spec": {"kubernetes": {}, "provider": {"type": "local"}, "region": "local", "hibernation": {"enabled": asleep}},
            "status": {"seedName": "a", "hibernated": asleep, "conditions": conditions, "lastOperation": {"type": type_, "state": state,
                "progress": 5, "description": "", "lastUpdateTime": "2026-01-01T00:00:00Z"}}}))
        .unwrap()
    }

    fn condition(type_: &str, status: &str) -> Value {
        json!({"type": type_, "status": status, "reason": "R", "message": "m.",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn a_condition_that_a_move_breaks_says_moving_and_others_say_what_is_seen() {
        let explained = |operation: (&str, &str), type_: &str, status| {
            let shoot = shoot(operation.0, operation.1, &json!([]), false);
            let seen = explained_by_move(&shoot, type_, Observation::new(status, "Seen", "It is so."));
            (seen.status, seen.reason.to_owned(), seen.message)
        };
        for moving in [
            ("Migrate", "Processing"),
            ("Migrate", "Error"),
            ("Migrate", "Succeeded"),
            ("Restore", "Processing"),
        ] {
            let (status, reason, message) = explained(moving, API_SERVER_AVAILABLE, False);
            assert_eq!((status, reason.as_str()), (False, "Moving"), "{moving:?}");
            assert!(message.ends_with("moves to another seed. It is so."), "{message}");
            for (type_, seen, expected) in [
                (CONTROL_PLANE_HEALTHY, False, (Progressing, "Moving")),
                (EVERY_NODE_READY, Unknown, (Unknown, "Moving")),
                (SYSTEM_COMPONENTS_HEALTHY, Unknown, (Unknown, "Moving")),
                // The API answers, and a node is not ready.
                (EVERY_NODE_READY, False, (False, "Seen")),
                (API_SERVER_AVAILABLE, True, (True, "Seen")),
            ] {
                let (status, reason, _) = explained(moving, type_, seen);
                assert_eq!((status, reason.as_str()), expected, "{moving:?} {type_}");
            }
        }
        for settled in [
            ("Reconcile", "Error"),
            ("Restore", "Succeeded"),
            ("Migrate", "Pending"),
        ] {
            let (status, reason, _) = explained(settled, API_SERVER_AVAILABLE, False);
            assert_eq!((status, reason.as_str()), (False, "Seen"), "{settled:?}");
        }
    }

    #[test]
    fn no_condition_holds_any_more_when_a_move_stops_the_api_server() {
        let now = Time(jiff::Timestamp::from_second(2_000_000_000).unwrap());
        let conditions = json!([
            condition(API_SERVER_AVAILABLE, "True"),
            condition(CONTROL_PLANE_HEALTHY, "True"),
            condition("ObservabilityComponentsHealthy", "True"),
            condition(EVERY_NODE_READY, "True"),
        ]);
        let before = shoot("Migrate", "Processing", &conditions, false);
        let after = without_api_server(&before, &now).unwrap();
        let told: Vec<_> = after
            .iter()
            .map(|c| (c.type_.as_str(), c.status, c.reason.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (API_SERVER_AVAILABLE, False, "Moving"),
                (CONTROL_PLANE_HEALTHY, Progressing, "Moving"),
                ("ObservabilityComponentsHealthy", True, "R"),
                (EVERY_NODE_READY, Unknown, "Moving"),
            ]
        );
        let again = shoot("Migrate", "Processing", &json!(after), false);
        assert_eq!(without_api_server(&again, &now), None);
        let asleep = shoot("Migrate", "Processing", &conditions, true);
        assert_eq!(without_api_server(&asleep, &now), None);
    }
}
