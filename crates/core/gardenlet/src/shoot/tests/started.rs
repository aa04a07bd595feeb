//! The first write of an operation: the fields that change, and the fields that stay.

use super::*;

#[test]
fn the_first_write_records_the_seed_before_anything_is_made_there() {
    let patch = status::started(
        &shoot(&json!({})),
        "dev",
        &writer(),
        Operation::Create,
        &Time(now()),
    );
    assert_eq!(patch["seedName"], "a");
    assert_eq!(patch["technicalID"], "shoot--dev--demo");
    assert_eq!(patch["uid"], "u-1");
    assert_eq!(patch["observedGeneration"], 2);
    assert_eq!(
        patch["lastOperation"]["description"],
        "Reconciliation of Shoot cluster initialized."
    );
}

#[test]
fn a_retry_keeps_the_errors_and_the_start_of_the_cycle() {
    let mut again = recorded("a", "Reconcile", "Error");
    again["status"]["retryCycleStartTime"] = json!(NOW);
    let again = shoot(&again);
    let patch = status::started(&again, "dev", &writer(), Operation::Reconcile, &Time(now()));
    assert!(
        patch.get("lastErrors").is_none() && patch.get("retryCycleStartTime").is_none(),
        "{patch}"
    );
}

/// R17-61: the loss is reported once and without a retry. The next epoch starts with the full retry duration.
#[test]
fn what_is_lost_is_told_once_and_begins_anew_in_the_next_epoch() {
    let mut over = recorded("a", "Reconcile", "Processing");
    over["status"]["retryCycleStartTime"] = json!("2025-12-01T00:00:00Z");
    over["status"]["lastOperation"]["progress"] = json!(40);
    let patch = status::lost(&shoot(&over), Type::Reconcile, "it is lost", Time(now())).unwrap();
    let last = &patch["lastOperation"];
    assert_eq!((&last["state"], &last["progress"]), (&json!("Error"), &json!(40)));
    assert!(
        !last["description"].as_str().unwrap().contains("retried"),
        "{patch}"
    );
    json_patch::merge(&mut over, &json!({"status": patch}));
    let told = shoot(&over);
    assert_eq!(
        status::lost(&told, Type::Reconcile, "it is lost", Time(now())),
        None
    );
    assert!(status::lost(&told, Type::Reconcile, "in another epoch", Time(now())).is_some());
    let anew = status::started(&told, "dev", &writer(), Operation::Reconcile, &Time(now()));
    assert_eq!(anew["retryCycleStartTime"], NOW);
    assert!(
        anew["lastErrors"].is_null() && anew.get("lastErrors").is_some(),
        "{anew}"
    );
}

/// A former host, or the thief of a certificate, has filled the status up to the bound of seeds.
#[test]
fn the_first_write_bounds_a_status_that_a_host_has_filled() {
    let long = "x".repeat(20_000);
    let condition = |type_: &str| {
        json!({"type": type_, "status": "True", "reason": "R", "message": long,
            "lastTransitionTime": NOW, "lastUpdateTime": NOW})
    };
    let compose = |shoot: &Shoot| {
        let begin = |shoot: &Shoot| {
            let started = status::started(shoot, "dev", &writer(), Operation::Restore, &Time(now()));
            let told = &shoot.status.as_ref().unwrap().conditions;
            // Hooks of the operation write the list.
            status::with_content(started, Some(json!({"conditions": told})))
        };
        first_status::compose(shoot, shoot, &[], &Time(now()), begin)
    };
    let mut filled = recorded("a", "Restore", "Error");
    filled["status"]["conditions"] = json!([condition("APIServerAvailable"), condition("OfTheAttacker")]);
    filled["status"]["encryptedResources"] = json!([long]);
    filled["status"]["retryCycleStartTime"] = json!(NOW);
    let left_behind = json!({"description": long, "taskID": placement::last_errors::LEFT_BEHIND});
    filled["status"]["lastErrors"] = json!([left_behind, {"description": long}]);
    let filled = shoot(&filled);
    let mut after = json!(filled);
    json_patch::merge(&mut after, &json!({"status": compose(&filled)}));
    assert!(after["status"].to_string().len() < 4000, "{after}");
    assert_eq!(after["status"]["lastErrors"][0]["taskID"], left_behind["taskID"]);
    assert_eq!(after["status"]["conditions"].as_array().unwrap().len(), 1);

    let mut small = recorded("a", "Restore", "Error");
    small["status"]["encryptedResources"] = json!(["a"]);
    let patch = compose(&shoot(&small));
    assert_eq!(patch.get("encryptedResources"), None, "{patch}");
}

/// A former host can name running instances of the next host as left behind.
#[test]
fn a_restore_clears_the_errors_of_the_former_host() {
    let mut arrived = recorded("a", "Migrate", "Succeeded");
    let machine = "machine m-1 may be left behind";
    let left_behind = json!({"description": machine, "taskID": placement::last_errors::LEFT_BEHIND});
    arrived["status"]["lastErrors"] = json!([left_behind]);
    let arrived = shoot(&arrived);
    let begin = |shoot: &Shoot| status::started(shoot, "dev", &writer(), Operation::Restore, &Time(now()));
    let patch = first_status::compose(&arrived, &arrived, &[], &Time(now()), begin);
    assert_eq!(patch.get("lastErrors"), Some(&json!(null)), "{patch}");
}

/// Policy `gardenlet-size` lets a seed hand over half of its bound.
#[test]
fn a_hand_over_leaves_room_for_the_next_seed() {
    let long = "x".repeat(5000);
    let mut moving = approved(recorded("a", "Migrate", "Processing")["status"].clone());
    moving["status"]["encryptedResources"] = json!(vec![long.as_str(); 9]);
    let restored = json!({"epoch": 1, "fenced": NOW, "unknown": long});
    moving["status"]["ownership"] = json!({"epoch": 1, "phase": "Sealing", "restored": restored});
    let moving = shoot(&moving);
    let patch = status::handed_over(&moving, &end(1), &Time(now())).unwrap();
    let mut after = json!(moving);
    json_patch::merge(&mut after, &json!({"status": patch}));
    let status = &after["status"];
    assert_eq!(
        (&status["seedName"], &status["ownership"]["epoch"]),
        (&json!("b"), &json!(2))
    );
    assert!(status.to_string().len() < 4000, "{status}");
}
