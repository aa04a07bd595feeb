//! Errors of an earlier run in `status.lastErrors` while the next run continues.

use api::meta::LastOperationType;
use flow::Progress;
use serde_json::Value;

use super::*;

fn left(tasks: &[&str], unfinished: &[&'static str]) -> Option<Vec<String>> {
    let errors: Vec<_> = tasks
        .iter()
        .map(|task| json!({"taskID": task, "description": format!("task \"{task}\" failed: refused")}))
        .collect();
    let shoot = shoot(&json!({"status": {"lastErrors": errors}}));
    let progress = Progress {
        running: vec!["Deploying Worker"],
        unfinished: unfinished.to_vec(),
        ..Progress::default()
    };
    let patch = status::progressed(&shoot, LastOperationType::Reconcile, &progress, &Time(now()));
    assert_eq!(patch["lastOperation"]["description"], "Deploying Worker");
    // A merge patch keeps an omitted field.
    let errors = patch.as_object().unwrap().get("lastErrors")?;
    let errors = match errors {
        Value::Null => Vec::new(),
        errors => errors.as_array().unwrap().clone(),
    };
    let task_of = |error: Value| error["taskID"].as_str().unwrap().to_owned();
    Some(errors.into_iter().map(task_of).collect())
}

#[test]
fn an_error_leaves_the_status_once_its_task_has_succeeded() {
    let errors = ["Deploying DNS", "Deploying Worker"];
    assert_eq!(left(&errors, &["Deploying DNS", "Deploying Worker"]), None);
    assert_eq!(
        left(&errors, &["Deploying Worker"]).unwrap(),
        ["Deploying Worker"]
    );
    assert!(left(&errors, &[]).unwrap().is_empty());
    assert_eq!(left(&[], &["Deploying Worker"]), None);
}

#[test]
fn an_error_of_a_step_before_the_flow_leaves_the_status_when_the_flow_runs() {
    for task in ["Collecting facts", "Syncing Cluster resource", status::OWNERSHIP] {
        assert!(left(&[task], &["Deploying Worker"]).unwrap().is_empty(), "{task}");
    }
}

#[test]
fn an_error_of_a_step_after_the_flow_stays_until_the_operation_succeeds() {
    for task in [status::OWNER_TERMS, status::CLUSTER_DELETION] {
        assert_eq!(left(&[task], &[]), None, "{task}");
    }
}

/// A former host may have written the error. Only the deletion by the present host leaves machines behind.
#[test]
fn machines_left_behind_stay_in_the_status_of_a_deletion_alone() {
    let task = placement::last_errors::LEFT_BEHIND;
    assert!(left(&[task], &[]).unwrap().is_empty());
    let mut deleted = recorded("a", "Delete", "Processing");
    deleted["metadata"] = json!({"deletionTimestamp": NOW});
    deleted["status"]["lastErrors"] = json!([{"taskID": task, "description": "machine m-1"}]);
    let progress = Progress::default();
    let patch = status::progressed(
        &shoot(&deleted),
        LastOperationType::Delete,
        &progress,
        &Time(now()),
    );
    assert_eq!(patch.get("lastErrors"), None, "{patch}");
}
