//! Status patches, applied as the API server would.
#![allow(clippy::unwrap_used)]

use api::{
    extensions::Infrastructure,
    meta::{ErrorCode, RawExtension},
};
use jiff::Timestamp;
use runtime::Error;
use serde_json::{Value, json};

use super::{difference, failed, interim, processing, succeeded, waiting};
use crate::{Operation, Outcome};

fn object(status: &Value, timestamp: &str) -> Infrastructure {
    serde_json::from_value(json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Infrastructure",
        "metadata": {"name": "i", "namespace": "n", "generation": 3, "annotations": {"gardener.cloud/timestamp": timestamp}},
        "spec": {"type": "local", "region": "r", "secretRef": {"name": "s", "namespace": "n"}},
        "status": status,
    }))
    .unwrap()
}

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn merged(target: &Value, patch: &Value) -> Value {
    let (Value::Object(target), Value::Object(patch)) = (target, patch) else {
        return patch.clone();
    };
    let mut result = target.clone();
    for (key, value) in patch {
        if value.is_null() {
            result.remove(key);
        } else {
            result.insert(
                key.clone(),
                merged(target.get(key).unwrap_or(&Value::Null), value),
            );
        }
    }
    Value::Object(result)
}

/// R7-30: a controller's state is kept in `status.state`.
#[test]
fn success_replaces_state_as_a_whole_and_keeps_what_others_wrote() {
    let before = json!({
        "state": {"old": 1, "deep": {"gone": true, "kept": 1}}, "nodesCIDR": "10.0.0.0/24",
        "conditions": [{"type": "C", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z",
            "lastUpdateTime": "2026-01-01T00:00:00Z"}],
        "lastError": {"description": "x"},
    });
    let outcome = Outcome {
        state: Some(RawExtension(json!({"new": 2, "deep": {"kept": 1}}))),
        ..Outcome::none()
    };
    let patch = succeeded(
        &object(&before, ""),
        Operation::Reconcile,
        &outcome,
        at("2026-02-01T00:00:00.5Z"),
    );
    assert_eq!(patch.get("conditions"), None, "conditions are not ours to write");
    let after = merged(&before, &patch);
    assert_eq!(after["state"], json!({"new": 2, "deep": {"kept": 1}}));
    assert_eq!(after["nodesCIDR"], "10.0.0.0/24");
    assert_eq!(after.get("lastError"), None);
    assert_eq!(after["observedGeneration"], 3);
    assert_eq!(
        after["lastOperation"],
        json!({"type": "Reconcile", "state": "Succeeded", "progress": 100, "lastUpdateTime": "2026-02-01T00:00:00Z",
            "description": "Successfully reconciled Infrastructure"})
    );
}

#[test]
fn migrate_without_an_outcome_keeps_the_state_of_the_last_reconciliation() {
    let before = json!({"state": {"id": 1}, "providerStatus": {"id": 1}});
    let patch = succeeded(
        &object(&before, ""),
        Operation::Migrate,
        &Outcome::none(),
        at("2026-02-01T00:00:00Z"),
    );
    let after = merged(&before, &patch);
    assert_eq!(after["state"], json!({"id": 1}));
    assert_eq!(
        after["lastOperation"]["description"],
        "Successfully migrated Infrastructure"
    );
}

/// RX-11: data that must not be lost is written before the operation ends, without a report of the result.
#[test]
fn what_is_kept_midway_changes_nothing_else_and_is_written_once() {
    let before = json!({
        "state": {"id": 1, "old": true}, "providerStatus": {"id": 1},
        "lastOperation": {"type": "Reconcile", "state": "Processing", "progress": 1, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"},
    });
    let outcome = Outcome {
        state: Some(RawExtension(json!({"id": 1, "before": "x"}))),
        ..Outcome::none()
    };
    let patch = interim(&object(&before, ""), &outcome);
    assert_eq!(patch, json!({"state": {"old": null, "before": "x"}}));
    let after = merged(&before, &patch);
    assert_eq!(interim(&object(&after, ""), &outcome), json!({}));
}

#[test]
fn an_error_carries_its_codes_and_leaves_the_state() {
    let before = json!({"state": {"id": 1}});
    let error = Error::config(
        ErrorCode::ErrInfraUnauthenticated,
        "the cloud refuses the credentials: renew them",
    );
    let patch = failed(
        &object(&before, ""),
        Operation::Restore,
        &error,
        at("2026-02-01T00:00:00Z"),
    );
    let after = merged(&before, &patch);
    assert_eq!(after["lastError"]["codes"], json!(["ERR_INFRA_UNAUTHENTICATED"]));
    assert_eq!(
        after["lastError"]["description"],
        "Error restoring Infrastructure: the cloud refuses the credentials: renew them"
    );
    assert_eq!(after["lastOperation"]["state"], "Error");
    assert_eq!(after["state"], json!({"id": 1}));
}

#[test]
fn the_answer_is_never_older_than_the_question() {
    let now = at("2026-02-01T00:00:00.9Z");
    for (asked, expected) in [
        ("2026-01-31T23:59:59Z", "2026-02-01T00:00:00Z"),
        ("2026-02-01T00:00:00.500000000Z", "2026-02-01T00:00:01Z"),
        ("2026-02-01T00:02:00Z", "2026-02-01T00:02:00Z"),
        ("not a time", "2026-02-01T00:00:00Z"),
    ] {
        let patch = processing(&object(&json!({}), asked), Operation::Create, now);
        assert_eq!(
            patch["lastOperation"]["lastUpdateTime"], expected,
            "asked at {asked}"
        );
    }
}

#[test]
fn waiting_says_for_what_and_is_no_error() {
    let patch = waiting(
        &object(&json!({}), ""),
        Operation::Create,
        "the namespace does not exist yet",
        at("2026-02-01T00:00:00Z"),
    );
    assert_eq!(patch["lastOperation"]["state"], "Processing");
    assert_eq!(
        patch["lastOperation"]["description"],
        "Reconciling the Infrastructure: the namespace does not exist yet"
    );
    assert_eq!(patch.get("lastError"), None);
}

/// An attempt takes 20 s and the pause after an attempt 1 s: the user must find the cause during both.
#[test]
fn the_cause_of_a_wait_stays_in_the_status_while_the_next_attempt_runs() {
    let now = at("2026-02-01T00:00:00Z");
    let cause = "machine m-1: Delete Processing, the instance i-1 shuts down";
    let asked = object(&json!({}), "");
    let waits = merged(&json!({}), &waiting(&asked, Operation::Reconcile, cause, now));
    let fails = Error::transient(cause);
    let failed = merged(&json!({}), &failed(&asked, Operation::Reconcile, &fails, now));
    let title = "Reconciling the Infrastructure";
    for (status, operation, expected) in [
        (&json!({}), Operation::Reconcile, title.to_owned()),
        (&waits, Operation::Reconcile, format!("{title}: {cause}")),
        // The cause of a failure stays in lastError.
        (&failed, Operation::Reconcile, title.to_owned()),
        (
            &waits,
            Operation::Delete,
            "Deleting the Infrastructure".to_owned(),
        ),
    ] {
        let begun = processing(&object(status, ""), operation, at("2026-02-01T00:00:01Z"));
        let after = merged(status, &begun);
        assert_eq!(after["lastOperation"]["state"], "Processing");
        assert_eq!(after["lastOperation"]["description"], expected);
        assert_eq!(after["lastOperation"]["lastUpdateTime"], "2026-02-01T00:00:01Z");
    }
}

#[test]
fn a_difference_names_what_goes() {
    assert_eq!(difference(&json!({"a": 1}), &json!({"a": 1})), None);
    assert_eq!(
        difference(&json!({"a": {"b": 1, "c": 2}}), &json!({"a": {"c": 3}})),
        Some(json!({"a": {"b": null, "c": 3}}))
    );
    assert_eq!(
        difference(&json!({"a": [1, 2]}), &json!({"a": [2]})),
        Some(json!({"a": [2]}))
    );
}

/// The kubeconfig of a tenant names a server of the tenant. The gardenlet repeats the text in an Event.
#[test]
fn a_text_of_a_cloud_is_a_single_line() {
    let (infrastructure, now) = (
        object(&json!({}), "2026-01-01T00:00:00Z"),
        at("2026-01-01T00:00:01Z"),
    );
    let forged = "403\n  Warning  DataLost \u{1b}[2K";
    let shown = "403\\u{a}  Warning  DataLost \\u{1b}[2K";
    let error = Error::transient(forged);
    let patch = failed(&infrastructure, Operation::Reconcile, &error, now);
    let waits = waiting(&infrastructure, Operation::Reconcile, forged, now);
    for text in [
        &patch["lastError"]["description"],
        &patch["lastOperation"]["description"],
        &waits["lastOperation"]["description"],
    ] {
        assert!(text.as_str().unwrap().ends_with(shown), "{text}");
    }
}
