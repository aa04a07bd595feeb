//! Records an error of this process in the status of the reconciled object.

use api::meta::{LastError, LastOperation, LastOperationState, LastOperationType};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use runtime::Error;
use serde_json::{Value, json};

/// The status with the error; `None` if `told` is the same error already, or the error is no failure.
/// `since`: the time of the operation.
pub(crate) fn failure(
    error: &Error,
    told: Option<&LastError>,
    type_: LastOperationType,
    since: Time,
    now: Time,
) -> Option<Value> {
    let description = error.to_string();
    if !error.is_failure() || told.is_some_and(|told| told.description == description) {
        return None;
    }
    let operation = LastOperation {
        description: format!("{description} Operation will be retried."),
        last_update_time: since,
        progress: 0,
        state: LastOperationState::Error,
        type_,
    };
    let error = LastError {
        description,
        task_id: None,
        codes: error.codes().to_vec(),
        last_update_time: Some(now),
    };
    Some(json!({ "lastOperation": operation, "lastError": error }))
}
