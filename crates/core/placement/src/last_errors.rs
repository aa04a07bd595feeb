//! `status.lastErrors` of a Shoot: the errors that users see. The gardenlet builds, extends, reduces and
//! bounds the list by this module alone. A patch with `null` clears the list.
//!
//! | function | purpose |
//! |---|---|
//! | `new_error` | builds an error |
//! | `patch_value` | the list of a report, within the bound |
//! | `without_solved` | the list without errors of steps that have succeeded meanwhile |
//! | `add_left_behind`, `with_left_behind` | adds resources that a forced deletion leaves behind |
//! | `keep_left_behind` | keeps these errors in a later report of the deletion |
//!
//! The bound is [`MOST_ERRORS`]. Errors about resources left behind come in addition, because no later step
//! can name these resources again. [`crate::bounded_status`] applies the bound to all errors of a large
//! status, and bounds the texts as well. The definition of the Shoot has no bound for the list.

use api::{
    gardencore::Shoot,
    meta::{ErrorCode, LastError, LastOperationType},
    text::one_line,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

/// The errors that a report has at most. A flow reports an error for each task that has failed.
pub const MOST_ERRORS: usize = 8;

/// Task of the errors that name resources left behind by a forced deletion.
pub const LEFT_BEHIND: &str = "Deleting all machines of the Shoot by force";

/// An error of this task. A cloud of the tenant may write the description, so the description becomes a
/// single line.
#[must_use]
pub fn new_error(task: &str, description: &str, codes: Vec<ErrorCode>, now: &Time) -> LastError {
    LastError {
        description: one_line(description).into_owned(),
        task_id: Some(task.to_owned()),
        codes,
        last_update_time: Some(now.clone()),
    }
}

/// The errors in the status of the Shoot.
#[must_use]
pub fn reported(shoot: &Shoot) -> &[LastError] {
    shoot
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.last_errors)
}

/// Whether the status has a single error, with this description.
#[must_use]
pub fn is_only_error(shoot: &Shoot, description: &str) -> bool {
    matches!(reported(shoot), [only] if only.description == one_line(description))
}

/// The value of field `lastErrors` in a merge patch: the first errors, within the bound.
#[must_use]
pub fn patch_value(errors: &[LastError]) -> Value {
    let first: Vec<_> = errors.iter().take(MOST_ERRORS).collect();
    json!(first)
}

/// The value of field `lastErrors` without the solved errors; `None` if all errors stay.
#[must_use]
pub fn without_solved(shoot: &Shoot, is_unsolved: impl Fn(&LastError) -> bool) -> Option<Value> {
    let errors = reported(shoot);
    let unsolved: Vec<_> = errors.iter().filter(|error| is_unsolved(error)).collect();
    (unsolved.len() < errors.len()).then(|| json!(Some(unsolved).filter(|unsolved| !unsolved.is_empty())))
}

fn left_behind(shoot: &Shoot) -> impl Iterator<Item = &LastError> {
    let errors = reported(shoot).iter();
    errors.filter(|error| error.task_id.as_deref() == Some(LEFT_BEHIND))
}

/// The sentences in the status about resources left behind.
#[must_use]
pub fn named_left_behind(shoot: &Shoot) -> Vec<String> {
    left_behind(shoot)
        .map(|error| error.description.clone())
        .collect()
}

/// A merge patch of the status that adds these sentences about resources left behind to the errors of the
/// Shoot.
#[must_use]
pub fn add_left_behind(newest: &Shoot, sentences: &[String], now: &Time) -> Value {
    with_left_behind(json!({"lastErrors": reported(newest)}), sentences, now)
}

/// Adds errors with these sentences to the patch of a status.
#[must_use]
pub fn with_left_behind(mut patch: Value, sentences: &[String], now: &Time) -> Value {
    if !sentences.is_empty() {
        let mut errors = patch["lastErrors"].as_array().cloned().unwrap_or_default();
        let added = sentences.iter();
        errors.extend(added.map(|what| json!(new_error(LEFT_BEHIND, what, Vec::new(), now))));
        patch["lastErrors"] = json!(errors);
    }
    patch
}

/// Whether errors about resources left behind can be true: the present host deletes the Shoot. Each hand-over
/// records operation `Migrate`, so the errors of a former host end with the first write of the next host.
#[must_use]
pub fn may_leave_behind(newest: &Shoot) -> bool {
    let status = newest.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    newest.metadata.deletion_timestamp.is_some()
        && last.is_some_and(|last| last.type_ == LastOperationType::Delete)
}

/// Adds the errors of the newest Shoot about resources left behind to the patch of a status, if the errors
/// can be true. The Machine objects are gone, so that no later step could name the machines again.
#[must_use]
pub fn keep_left_behind(newest: &Shoot, mut patch: Value) -> Value {
    let kept: Vec<_> = left_behind(newest).collect();
    if may_leave_behind(newest)
        && !kept.is_empty()
        && let Some(errors) = patch.get_mut("lastErrors")
    {
        let mut all = errors.as_array().cloned().unwrap_or_default();
        all.extend(kept.into_iter().map(|error| json!(error)));
        *errors = json!(all);
    }
    patch
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A Shoot whose host runs this operation.
    fn running(operation: &str, metadata: &Value, errors: &Value) -> Shoot {
        let last = json!({"type": operation, "state": "Processing", "progress": 0, "description": "",
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": metadata,
            "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
            "status": {"lastErrors": errors, "lastOperation": last},
        }))
        .unwrap()
    }

    /// A Shoot that the host deletes.
    fn shoot(errors: &Value) -> Shoot {
        let metadata = json!({"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        running("Delete", &metadata, errors)
    }

    fn epoch() -> Time {
        serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap()
    }

    fn descriptions(errors: &Value) -> Vec<&str> {
        let errors = errors.as_array().unwrap().iter();
        errors
            .map(|error| error["description"].as_str().unwrap())
            .collect()
    }

    #[test]
    fn a_description_is_a_single_line_and_is_known_again() {
        let error = new_error("task", "403\nfatal: \u{1b}[2K", Vec::new(), &epoch());
        assert_eq!(error.description, "403\\u{a}fatal: \\u{1b}[2K");
        let shoot = shoot(&patch_value(&[error]));
        assert!(is_only_error(&shoot, "403\nfatal: \u{1b}[2K"));
        assert!(!is_only_error(&shoot, "403 fatal"));
    }

    #[test]
    fn a_report_has_at_most_the_bound_of_errors() {
        let error = |number: usize| new_error("task", &number.to_string(), Vec::new(), &epoch());
        let many: Vec<_> = (0..MOST_ERRORS + 3).map(error).collect();
        let value = patch_value(&many);
        assert_eq!(value.as_array().unwrap().len(), MOST_ERRORS);
        assert_eq!(value[0], json!(many[0]));
        assert_eq!(patch_value(&many[..1]), json!([many[0]]));
    }

    #[test]
    fn a_later_error_of_the_deletion_keeps_the_machines_in_the_status() {
        let machine = "machine m-1 (aws:///i-1) may be left behind";
        let shoot = shoot(&json!([
            {"taskID": LEFT_BEHIND, "description": machine},
            {"taskID": "Destroying main and events etcd", "description": "refused"},
        ]));
        let kept = |patch: Value| keep_left_behind(&shoot, patch)["lastErrors"].clone();
        assert_eq!(descriptions(&kept(json!({"lastErrors": null}))), [machine]);
        assert_eq!(
            descriptions(&kept(json!({"lastErrors": [{"description": "new"}]}))),
            ["new", machine]
        );
        let unrelated = json!({"lastOperation": {}});
        assert_eq!(keep_left_behind(&shoot, unrelated.clone()), unrelated);
        assert_eq!(named_left_behind(&shoot), [machine]);
    }

    /// A former host may have written any error. The error would name running instances of the next host.
    #[test]
    fn only_the_deletion_by_the_present_host_keeps_machines_in_the_status() {
        let errors = json!([{"taskID": LEFT_BEHIND, "description": "machine m-1 may be left behind"}]);
        let deleted = json!({"name": "web", "deletionTimestamp": "2026-01-01T00:00:00Z"});
        let cleared = json!({"lastErrors": null});
        for (operation, metadata, expected) in [
            ("Delete", &deleted, errors.clone()),
            ("Migrate", &deleted, Value::Null),
            ("Restore", &deleted, Value::Null),
            ("Reconcile", &json!({"name": "web"}), Value::Null),
            ("Migrate", &json!({"name": "web"}), Value::Null),
            ("Delete", &json!({"name": "web"}), Value::Null),
        ] {
            let newest = running(operation, metadata, &errors);
            let kept = keep_left_behind(&newest, cleared.clone());
            let kept = kept["lastErrors"].clone();
            assert_eq!(kept, expected, "{operation} {metadata}");
        }
    }

    /// An instance that is not named costs money without an end.
    #[test]
    fn each_machine_left_behind_is_named_beyond_the_bound() {
        let sentences: Vec<_> = (0..MOST_ERRORS + 3)
            .map(|number| format!("machine m-{number}"))
            .collect();
        let added = add_left_behind(&shoot(&json!([{"description": "refused"}])), &sentences, &epoch());
        let reported = shoot(&added["lastErrors"]);
        assert_eq!(named_left_behind(&reported), sentences);
        let later = keep_left_behind(&reported, json!({"lastErrors": null}));
        assert_eq!(named_left_behind(&shoot(&later["lastErrors"])), sentences);
    }
}
