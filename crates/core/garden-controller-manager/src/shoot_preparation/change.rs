//! The content of `status.liveMigration`, as a merge patch of the status.

use api::{
    constants::condition::PREPARED,
    gardencore::{
        Shoot,
        shoot::{LiveMigrationStatus, MigrationPreparation},
    },
    meta::{Condition, ConditionStatus},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::decision::PreparationReport;

/// Records the grant. The condition waits for the report of the destination.
pub(super) fn grant(granted: &MigrationPreparation, now: Time) -> Value {
    let message = format!(
        "Seed {} may prepare until {}. The gardenlet of the seed has not reported yet: a gardenlet prepares only with \
         --enable-preparation.",
        granted.destination, granted.expiry.0
    );
    let waits = Condition::new(PREPARED, ConditionStatus::Progressing, "Granted", &message, now);
    json!({"liveMigration": {"preparation": granted, "conditions": [waits]}})
}

/// Withdraws the grant, and reports the obstacle. `None` if the status has no grant and reports the obstacle
/// already.
pub(super) fn refuse(shoot: &Shoot, report: &PreparationReport, now: Time) -> Option<Value> {
    let recorded = live_migration(shoot);
    let obstacle = Condition::new(
        PREPARED,
        ConditionStatus::False,
        report.reason,
        &report.message,
        now,
    );
    let has_obstacle = matches!(recorded.conditions.as_slice(), [only] if is_same_report(only, &obstacle));
    let is_reported = recorded.preparation.is_none() && has_obstacle;
    // No field of a report by the destination stays: the withdrawal depends on no value of a seed.
    (!is_reported).then(|| json!({"liveMigration": {"preparation": null, "conditions": [obstacle]}}))
}

/// Whether two conditions differ at most in their times.
fn is_same_report(recorded: &Condition, report: &Condition) -> bool {
    let content = |condition: &Condition| {
        let Condition {
            type_,
            status,
            reason,
            message,
            codes,
            ..
        } = condition.clone();
        (type_, status, reason, message, codes)
    };
    content(recorded) == content(report)
}

/// Removes all fields of a preparation.
pub(super) fn withdraw() -> Value {
    json!({"liveMigration": null})
}

fn live_migration(shoot: &Shoot) -> LiveMigrationStatus {
    let status = shoot.status.as_ref();
    let recorded = status.and_then(|status| status.live_migration.clone());
    recorded.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const NOW: &str = "2026-01-01T00:00:00Z";

    fn now() -> Time {
        serde_json::from_value(json!(NOW)).unwrap()
    }

    fn report() -> PreparationReport {
        PreparationReport {
            reason: "NotEnabled",
            message: "Off.".to_owned(),
        }
    }

    fn shoot(live_migration: &Value) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "web"},
            "spec": {"region": "r", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {"liveMigration": live_migration},
        }))
        .unwrap()
    }

    /// The destination writes the condition with a grant, and could otherwise prevent the withdrawal.
    #[test]
    fn the_report_of_a_destination_has_no_part_in_the_withdrawal() {
        let reported = json!({"type": PREPARED, "status": "False", "reason": "NotEnabled", "message": "Other.",
            "lastTransitionTime": "7999-12-31T23:59:59-23:59", "lastUpdateTime": NOW});
        let granted = json!({"uid": "u", "source": "a", "destination": "b", "epoch": 3, "expiry": NOW});
        let recorded = shoot(&json!({"preparation": granted, "conditions": [reported, reported]}));
        let written = refuse(&recorded, &report(), now()).unwrap();
        let conditions = written["liveMigration"]["conditions"].as_array().unwrap();
        assert_eq!(conditions.len(), 1);
        for time in ["lastTransitionTime", "lastUpdateTime"] {
            assert_eq!(conditions[0][time], NOW);
        }
    }

    /// A repeated write would wake all watchers of the Shoot.
    #[test]
    fn an_obstacle_is_reported_once() {
        let written = refuse(&shoot(&Value::Null), &report(), now()).unwrap();
        assert_eq!(written["liveMigration"]["preparation"], Value::Null);
        let conditions = &written["liveMigration"]["conditions"];
        assert_eq!(conditions[0]["type"], PREPARED);
        assert_eq!(conditions[0]["reason"], "NotEnabled");
        let reported = shoot(&json!({"conditions": conditions}));
        assert_eq!(refuse(&reported, &report(), now()), None);
    }

    #[test]
    fn a_grant_ends_with_the_obstacle() {
        let granted = MigrationPreparation {
            uid: "u".into(),
            source: "a".into(),
            destination: "b".into(),
            epoch: 3,
            expiry: now(),
        };
        let granted = grant(&granted, now());
        assert_eq!(granted["liveMigration"]["conditions"][0]["status"], "Progressing");
        let recorded = shoot(&granted["liveMigration"]);
        let written = refuse(&recorded, &report(), now()).unwrap();
        let conditions = written["liveMigration"]["conditions"].as_array().unwrap();
        assert_eq!((conditions.len(), &conditions[0]["status"]), (1, &json!("False")));
        assert_eq!(written["liveMigration"]["preparation"], Value::Null);
    }
}
