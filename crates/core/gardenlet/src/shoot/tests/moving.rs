//! The status of a Shoot from the edit of `spec.seedName` to the end of the move: the end of the move, the
//! conditions, and the progress.

use api::meta::{Condition, ConditionStatus};
use flow::Progress;
use placement::Pause;

use super::*;

/// On seed a, reconciled there, and wanted on seed b.
fn edited() -> Shoot {
    let mut edited = recorded("a", "Reconcile", "Succeeded");
    edited["spec"]["seedName"] = json!("b");
    edited["status"]["settledSeedName"] = json!("a");
    edited["status"]["migration"] = json!({"source": "a", "destination": "b", "generation": 2, "spec": {}});
    let condition = |type_: &str| {
        Condition::new(
            type_,
            ConditionStatus::True,
            "R",
            "m",
            Time(now() - jiff::SignedDuration::from_hours(1)),
        )
    };
    edited["status"]["conditions"] = json!(["APIServerAvailable", "ControlPlaneHealthy"].map(condition));
    shoot(&edited)
}

fn after(shoot: &Shoot, patch: &Value) -> Shoot {
    let mut patched = json!(shoot);
    json_patch::merge(&mut patched, &json!({"status": patch}));
    serde_json::from_value(patched).unwrap()
}

fn begun(shoot: &Shoot, operation: Operation, seed: &str) -> Shoot {
    let writer = Writer {
        seed: seed.to_owned(),
        ..writer()
    };
    after(
        shoot,
        &status::started(shoot, "dev", &writer, operation, &Time(now())),
    )
}

fn handed_over(shoot: &Shoot) -> Shoot {
    after(shoot, &status::handed_over(shoot, &end(1), &Time(now())).unwrap())
}

fn settled_in(shoot: &Shoot) -> Option<&str> {
    shoot.status.as_ref()?.settled_seed_name.as_deref()
}

/// `kubectl wait --for=jsonpath='{.status.settledSeedName}'=b` ends at the first Shoot with `b` in the field.
#[test]
fn the_settled_seed_is_the_destination_only_after_the_end_of_the_move() {
    let edited = edited();
    assert_eq!(settled_in(&edited), Some("a"), "a wait that begins with the edit");
    let migrating = begun(&edited, Operation::Migrate, "a");
    assert_eq!(settled_in(&migrating), None);
    let arrived = handed_over(&migrating);
    assert_eq!(arrived.status.as_ref().unwrap().seed_name.as_deref(), Some("b"));
    assert_eq!(settled_in(&arrived), None);
    let restoring = begun(&arrived, Operation::Restore, "b");
    assert_eq!(settled_in(&restoring), None);
    let settled = |operation| after(&restoring, &status::settled(&restoring, operation, Time(now())));
    assert_eq!(settled_in(&settled(Operation::Restore)), Some("b"));
    // A cancelled move ends in the source seed.
    let called_off = begun(&migrating, Operation::Restore, "a");
    assert_eq!(settled_in(&called_off), None);
    let back = after(
        &called_off,
        &status::settled(&called_off, Operation::Restore, Time(now())),
    );
    assert_eq!(settled_in(&back), Some("a"));
    let reconciling = begun(&back, Operation::Reconcile, "a");
    assert_eq!(settled_in(&reconciling), Some("a"));
    assert_eq!(settled_in(&begun(&back, Operation::Delete, "a")), None);
}

/// A shoot that its source has taken back. The seed in between still has to clean up.
#[test]
fn the_end_of_a_restore_ends_the_former_residency_of_the_same_seed() {
    let mut back = recorded("a", "Restore", "Processing");
    back["status"]["formerSeeds"] = json!([{"name": "a", "epoch": 1}, {"name": "b", "epoch": 2}]);
    let back = shoot(&back);
    let ended = |shoot: &Shoot, seed: &str, operation: Operation| {
        let settled = status::settled(shoot, operation, Time(now()));
        status::with_own_residency_ended(shoot, seed, operation, settled)["formerSeeds"].clone()
    };
    let others = json!([{"name": "b", "epoch": 2}]);
    assert_eq!(ended(&back, "a", Operation::Restore), others);
    assert_eq!(ended(&back, "a", Operation::Reconcile), others);
    // No write of the list where nothing changes.
    assert_eq!(ended(&back, "a", Operation::Delete), Value::Null);
    assert_eq!(ended(&back, "c", Operation::Restore), Value::Null);
    let patch = status::with_own_residency_ended(&back, "a", Operation::Restore, json!({}));
    let written = after(&back, &patch);
    assert_eq!(json!(written.status.unwrap().former_seeds), others);
}

fn list_conditions(shoot: &Shoot) -> Vec<(&str, ConditionStatus, &str)> {
    let conditions = &shoot.status.as_ref().unwrap().conditions;
    conditions
        .iter()
        .map(|condition| {
            (
                condition.type_.as_str(),
                condition.status,
                condition.reason.as_str(),
            )
        })
        .collect()
}

#[test]
fn no_condition_of_the_source_stays_true_once_the_move_stops_the_api_server() {
    let moving = [
        ("APIServerAvailable", ConditionStatus::False, "Moving"),
        ("ControlPlaneHealthy", ConditionStatus::Progressing, "Moving"),
    ];
    let migrating = begun(&edited(), Operation::Migrate, "a");
    let at = |step: &'static str| {
        let progress = Progress {
            running: vec![step],
            ..Progress::default()
        };
        after(
            &migrating,
            &status::progressed(&migrating, Type::Migrate, &progress, &Time(now())),
        )
    };
    assert_eq!(
        list_conditions(&at("Checking that backups can be taken")),
        list_conditions(&migrating)
    );
    assert_eq!(list_conditions(&at("Deleting kube-apiserver deployment")), moving);
    // The write of that step may have failed.
    assert_eq!(list_conditions(&handed_over(&migrating)), moving);
    // After a takeover no earlier write reports that the API server is gone.
    let taken = after(
        &edited(),
        &json!({"seedName": "b", "lastOperation": last("Migrate", "Aborted", 0)}),
    );
    assert_eq!(list_conditions(&begun(&taken, Operation::Restore, "b")), moving);
    // The API server may run at the time of a repeated restoration.
    let mut restoring = begun(&handed_over(&migrating), Operation::Restore, "b");
    restoring.status.as_mut().unwrap().conditions = edited().status.unwrap().conditions;
    assert_eq!(
        list_conditions(&begun(&restoring, Operation::Restore, "b")),
        list_conditions(&restoring)
    );
}

#[test]
fn the_percentage_of_an_operation_that_is_tried_again_does_not_go_back() {
    let percent = |shoot: &Shoot| {
        shoot
            .status
            .as_ref()
            .unwrap()
            .last_operation
            .as_ref()
            .unwrap()
            .progress
    };
    let migrating = begun(&edited(), Operation::Migrate, "a");
    assert_eq!(percent(&migrating), 0);
    let failed = after(
        &migrating,
        &status::failed(
            &migrating,
            Type::Migrate,
            40,
            &[],
            Duration::from_secs(3600),
            Time(now()),
        ),
    );
    assert_eq!(percent(&begun(&failed, Operation::Migrate, "a")), 40);
    assert_eq!(percent(&begun(&failed, Operation::Restore, "a")), 0);
    let all_done = Progress {
        percent: 100,
        ..Progress::default()
    };
    let ending = status::progressed(&failed, Type::Migrate, &all_done, &Time(now()));
    assert_eq!(percent(&after(&failed, &ending)), 99);
}

#[test]
fn the_hand_over_reports_that_the_destination_is_awaited() {
    let migrating = begun(&edited(), Operation::Migrate, "a");
    let arrived = handed_over(&migrating);
    let progress = arrived.status.unwrap().migration.unwrap().progress.unwrap();
    assert_eq!(
        (progress.seed_name.as_str(), progress.awaited.as_deref()),
        ("a", Some("the gardenlet of seed b begins the restoration"))
    );
}

/// garden-controller-manager withdraws the approval of a move from an ignored Shoot, unless a person asked
/// for the move by force.
#[test]
fn an_approved_move_begins_although_the_shoot_is_ignored() {
    let shoot = shoot(&json!({}));
    for (pause, operation, is_held) in [
        (Pause::ShootIgnored, Operation::Migrate, false),
        (Pause::SeedStopped, Operation::Migrate, true),
        (Pause::ShootIgnored, Operation::Reconcile, true),
    ] {
        let found = dispatch::is_held(Some(pause), &shoot, operation);
        assert_eq!(found, is_held, "{pause:?} {operation:?}");
    }
}
