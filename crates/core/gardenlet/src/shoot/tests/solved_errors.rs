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
