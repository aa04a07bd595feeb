//! Condition `Prepared` of a Shoot, the only field of the Shoot that the seed of a preparation writes.

use api::{
    constants::condition::PREPARED,
    gardencore::Shoot,
    meta::{Condition, ConditionStatus, find_condition},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::shoot::flows::prepare_flow::MISSING_PARTS;

/// Most characters of a message. Policy `gardenlet-shoot` allows 1024.
const LONGEST_MESSAGE: usize = 512;

/// The condition after a run of the flow. The condition is never `True`: this version prepares a part of the
/// control plane.
pub(super) fn prepared(seed: &str, failure: Option<&str>, now: Time) -> Condition {
    let (reason, message) = match failure {
        None => (
            "PartsMissing",
            format!(
                "Seed {seed} has prepared the namespace and the Secrets of an API server, and a BackupEntry names the place for backups. \
                 This version prepares no further part ({MISSING_PARTS}): a move without downtime of the API does not exist yet."
            ),
        ),
        Some(error) => (
            "PreparationFailed",
            format!("Seed {seed} could not prepare: {error}"),
        ),
    };
    let message: String = message.chars().take(LONGEST_MESSAGE).collect();
    Condition::new(PREPARED, ConditionStatus::False, reason, &message, now)
}

/// The merge patch of the status with this condition alone. `None` if the Shoot reports the condition
/// already.
pub(super) fn patch(shoot: &Shoot, condition: Condition) -> Option<Value> {
    let status = shoot.status.as_ref();
    let recorded = status.and_then(|status| status.live_migration.as_ref());
    let recorded = recorded.map(|recorded| recorded.conditions.as_slice());
    let recorded = recorded.unwrap_or_default();
    let mut conditions: Vec<_> = find_condition(recorded, PREPARED).cloned().into_iter().collect();
    condition.merge_into(&mut conditions);
    (recorded != conditions).then(|| json!({"liveMigration": {"conditions": conditions}}))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn now() -> Time {
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap()
    }

    fn shoot(conditions: &Value) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"region": "r", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"liveMigration": {"conditions": conditions}},
        }))
        .unwrap()
    }

    /// A reader must not take a prepared namespace for a live move.
    #[test]
    fn the_report_names_the_missing_parts() {
        for failure in [None, Some("no room")] {
            let condition = prepared("b", failure, now());
            assert_eq!(condition.status, ConditionStatus::False);
            let expected = failure.unwrap_or("does not exist yet");
            assert!(condition.message.contains(expected), "{}", condition.message);
        }
        let long = prepared("b", Some(&"€".repeat(2000)), now());
        assert!(long.message.chars().count() <= 1024);
    }

    /// Each write wakes all watchers of the Shoot.
    #[test]
    fn a_report_is_written_once_and_alone() {
        let first = patch(&shoot(&json!([])), prepared("b", None, now())).unwrap();
        let written = &first["liveMigration"]["conditions"];
        assert_eq!(patch(&shoot(written), prepared("b", None, now())), None);
        let failed = patch(&shoot(written), prepared("b", Some("no room"), now())).unwrap();
        assert_eq!(failed["liveMigration"]["conditions"].as_array().unwrap().len(), 1);
    }
}
