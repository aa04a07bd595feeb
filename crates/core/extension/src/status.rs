//! The status writes of an operation, as merge patches against the object that was read.
//!
//! A status has several writers: a gardenlet writes `state` before a restore, and further controllers keep
//! conditions. So only the difference is written. A plain merge would mix an old `state` with a new `state`.
//! The patch therefore sets or removes every field below a replaced field.

use api::{
    constants::TIMESTAMP,
    extensions::ExtensionObject,
    meta::{LastError, LastOperation, LastOperationState},
    text::one_line,
};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use runtime::Error;
use serde_json::{Map, Value, json};

use crate::{Operation, Outcome, kind};

/// The operation begins. A reported cause of a wait stays until the next report, as each attempt may take
/// longer than the pause between two attempts.
#[must_use]
pub fn processing<K: ExtensionObject>(object: &K, operation: Operation, now: Timestamp) -> Value {
    let title = format!("{} the {}", verb(operation).doing, kind::name::<K>());
    let doing = reported_wait(object, operation, &title).unwrap_or(title);
    patch(object, |status| {
        status.insert(
            "lastOperation".into(),
            last_operation(object, operation, LastOperationState::Processing, 1, &doing, now),
        );
    })
}

/// The cause of a wait that an earlier attempt of the same operation has reported.
fn reported_wait<K: ExtensionObject>(object: &K, operation: Operation, title: &str) -> Option<String> {
    let last = object.default_status()?.last_operation.as_ref()?;
    let is_same = last.type_ == operation.type_() && last.state == LastOperationState::Processing;
    let is_report = last.description.strip_prefix(title)?.starts_with(": ");
    (is_same && is_report).then(|| last.description.clone())
}

/// The operation waits. Not an error: only time is needed.
#[must_use]
pub fn waiting<K: ExtensionObject>(object: &K, operation: Operation, why: &str, now: Timestamp) -> Value {
    let doing = format!("{} the {}: {why}", verb(operation).doing, kind::name::<K>());
    patch(object, |status| {
        status.insert(
            "lastOperation".into(),
            last_operation(object, operation, LastOperationState::Processing, 1, &doing, now),
        );
    })
}

/// The operation met an error and will be tried again.
#[must_use]
pub fn failed<K: ExtensionObject>(object: &K, operation: Operation, error: &Error, now: Timestamp) -> Value {
    let description = format!("Error {} {}: {error}", verb(operation).failing, kind::name::<K>());
    // The cloud of a tenant writes parts of the text.
    let description = one_line(&description).into_owned();
    let last_error = LastError {
        description: description.clone(),
        task_id: None,
        codes: error.codes().to_vec(),
        last_update_time: Some(Time(answer_time(object, now))),
    };
    patch(object, |status| {
        status.insert("observedGeneration".into(), json!(object.meta().generation));
        status.insert("lastError".into(), json!(last_error));
        status.insert(
            "lastOperation".into(),
            last_operation(
                object,
                operation,
                LastOperationState::Error,
                50,
                &description,
                now,
            ),
        );
    })
}

/// Part of the outcome, written during the operation.
#[must_use]
pub fn interim<K: ExtensionObject>(object: &K, outcome: &Outcome) -> Value {
    patch(object, |status| leave(status, outcome))
}

/// The operation succeeded with this outcome.
#[must_use]
pub fn succeeded<K: ExtensionObject>(
    object: &K,
    operation: Operation,
    outcome: &Outcome,
    now: Timestamp,
) -> Value {
    let description = format!("Successfully {} {}", verb(operation).done, kind::name::<K>());
    patch(object, |status| {
        leave(status, outcome);
        status.insert("observedGeneration".into(), json!(object.meta().generation));
        status.remove("lastError");
        status.insert(
            "lastOperation".into(),
            last_operation(
                object,
                operation,
                LastOperationState::Succeeded,
                100,
                &description,
                now,
            ),
        );
    })
}

fn leave(status: &mut Map<String, Value>, outcome: &Outcome) {
    for (field, value) in &outcome.status {
        status.insert(field.clone(), value.clone());
    }
    if let Some(state) = &outcome.state {
        status.insert("state".into(), state.0.clone());
    }
    if let Some(provider_status) = &outcome.provider_status {
        status.insert("providerStatus".into(), provider_status.0.clone());
    }
    if let Some(resources) = &outcome.resources {
        status.insert("resources".into(), json!(resources));
    }
}

fn last_operation<K: ExtensionObject>(
    object: &K,
    operation: Operation,
    state: LastOperationState,
    progress: i32,
    description: &str,
    now: Timestamp,
) -> Value {
    json!(LastOperation {
        type_: operation.type_(),
        state,
        progress,
        description: one_line(description).into_owned(),
        last_update_time: Time(answer_time(object, now)),
    })
}

/// The time of a status write: now in whole seconds, but never before the answered request. A gardenlet takes
/// an older status as the answer to an earlier request, and the gardenlet's clock may be ahead.
fn answer_time<K: ExtensionObject>(object: &K, now: Timestamp) -> Timestamp {
    let asked = object
        .annotations()
        .get(TIMESTAMP)
        .and_then(|text| text.parse::<Timestamp>().ok());
    let seconds = match asked {
        Some(asked) => now
            .as_second()
            .max(asked.as_second() + i64::from(asked.subsec_nanosecond() > 0)),
        None => now.as_second(),
    };
    Timestamp::from_second(seconds).unwrap_or(now)
}

struct Verb {
    doing: &'static str,
    failing: &'static str,
    done: &'static str,
}

fn verb(operation: Operation) -> Verb {
    let (doing, failing, done) = match operation {
        Operation::Create | Operation::Reconcile => ("Reconciling", "reconciling", "reconciled"),
        Operation::Migrate => ("Migrating", "migrating", "migrated"),
        Operation::Restore => ("Restoring", "restoring", "restored"),
        Operation::Delete => ("Deleting", "deleting", "deleted"),
        Operation::ForceDelete => ("Force-deleting", "force-deleting", "force-deleted"),
    };
    Verb { doing, failing, done }
}

fn patch<K: ExtensionObject>(object: &K, change: impl FnOnce(&mut Map<String, Value>)) -> Value {
    let before = object_status(object);
    let mut after = before.clone();
    change(&mut after);
    difference(&Value::Object(before), &Value::Object(after)).unwrap_or_else(|| json!({}))
}

fn object_status<K: ExtensionObject>(object: &K) -> Map<String, Value> {
    match serde_json::to_value(object)
        .ok()
        .and_then(|mut object| object.get_mut("status").map(Value::take))
    {
        Some(Value::Object(status)) => status,
        _ => Map::new(),
    }
}

/// The merge patch (RFC 7396) that turns `before` into `after`; `None` without a difference.
fn difference(before: &Value, after: &Value) -> Option<Value> {
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return (before != after).then(|| after.clone());
    };
    let mut patch: Map<String, Value> = before
        .keys()
        .filter(|key| !after.contains_key(*key))
        .map(|key| (key.clone(), Value::Null))
        .collect();
    for (key, new) in after {
        match before.get(key) {
            None => drop(patch.insert(key.clone(), new.clone())),
            Some(old) => {
                if let Some(change) = difference(old, new) {
                    patch.insert(key.clone(), change);
                }
            }
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
