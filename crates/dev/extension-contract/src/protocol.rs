//! The fields of an extension object that a gardenlet writes and reads.

use api::{
    constants::{OPERATION, TIMESTAMP, WRITTEN_IN_EPOCH},
    extensions::ExtensionObject,
    meta::{LastOperationState, LastOperationType},
};
use extension::operation::requested;
use kube::{Api, ResourceExt, api::PostParams};
use runtime::{client::apply::FieldManager, clock};
use serde_json::json;

/// The field manager of the test in the role of a gardenlet.
pub const GARDENLET: FieldManager = FieldManager("gardenlet");

/// Checks, like a gardenlet, that the operation has succeeded.
pub fn ended<K: ExtensionObject>(object: &K, type_: LastOperationType, step: &str) -> Result<(), String> {
    if last(object) != Some((type_, LastOperationState::Succeeded)) {
        return Err(format!(
            "{step}: lastOperation is {:?}, not {type_:?} Succeeded",
            last(object)
        ));
    }
    let Some(status) = object.default_status() else {
        return Err(format!("{step}: no status"));
    };
    if status.last_error.is_some() {
        return Err(format!("{step}: lastError was left: {:?}", status.last_error));
    }
    if status.observed_generation != object.meta().generation {
        return Err(format!(
            "{step}: observedGeneration is {:?}",
            status.observed_generation
        ));
    }
    if let Some(request) = requested(object) {
        return Err(format!(
            "{step}: the annotation {OPERATION}={request} was left (RX-13)"
        ));
    }
    let asked = object
        .annotations()
        .get(TIMESTAMP)
        .and_then(|t| t.parse::<jiff::Timestamp>().ok());
    let answered = status
        .last_operation
        .as_ref()
        .map(|operation| operation.last_update_time.0);
    if asked > answered {
        return Err(format!(
            "{step}: lastUpdateTime {answered:?} is before the request of {asked:?}"
        ));
    }
    Ok(())
}

/// The last operation and the state of this operation.
pub fn last<K: ExtensionObject>(object: &K) -> Option<(LastOperationType, LastOperationState)> {
    object
        .default_status()?
        .last_operation
        .as_ref()
        .map(|last| (last.type_, last.state))
}

/// Creates an object like a gardenlet.
pub async fn create<K: ExtensionObject>(api: &Api<K>, object: &K, operation: &str) -> Result<(), String> {
    let mut object = object.clone();
    object
        .annotations_mut()
        .insert(OPERATION.into(), operation.into());
    object
        .annotations_mut()
        .insert(TIMESTAMP.into(), clock::now_rfc3339_nano());
    api.create(&PostParams::default(), &object)
        .await
        .map(|_| ())
        .map_err(|e| format!("could not be created: {e}"))
}

/// Asks for an operation, as a gardenlet does.
pub async fn annotate<K: ExtensionObject>(api: &Api<K>, object: &K, operation: &str) -> Result<(), String> {
    let body =
        json!({"metadata": {"annotations": {OPERATION: operation, TIMESTAMP: clock::now_rfc3339_nano()}}});
    GARDENLET
        .merge(api, &object.name_any(), &body)
        .await
        .map(|_| ())
        .map_err(|e| e.to_string())
}

/// Writes the epoch of the object like a gardenlet.
pub async fn written_in<K: ExtensionObject>(api: &Api<K>, object: &K, epoch: i64) -> Result<(), String> {
    let (name, epoch) = (object.name_any(), epoch.to_string());
    let written = GARDENLET.annotate(api, &name, WRITTEN_IN_EPOCH, Some(&epoch));
    written.await.map(|_| ()).map_err(|e| e.to_string())
}

/// The object; `None` if the object is gone.
pub async fn read<K: ExtensionObject>(api: &Api<K>, object: &K, step: &str) -> Result<Option<K>, String> {
    api.get_opt(&object.name_any())
        .await
        .map_err(|e| format!("{step}: the object could not be read: {e}"))
}
