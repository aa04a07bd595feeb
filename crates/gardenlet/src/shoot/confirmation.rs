//! A Shoot is taken down only with its confirmation.
//!
//! Admission refuses to delete a Shoot without it, but policies can be uninstalled, and a deletion that was
//! let through cannot be taken back. So the gardenlet looks again: without the annotation it keeps its
//! finalizer, the control plane goes on as it is, and `lastErrors` says what is awaited.

use api::{constants::CONFIRMATION_DELETION, gardencore::Shoot, meta::LastError};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use serde_json::{Value, json};

/// Task under which a deletion that nobody confirmed is told in `lastErrors`.
const TASK: &str = "Checking whether the deletion is confirmed";

/// The status of a Shoot that is being deleted and whose deletion nobody confirmed; `None` if it is told
/// already. The first write of whatever operation begins next takes it away.
#[must_use]
pub fn is_missing(shoot: &Shoot, now: &Time) -> Option<Value> {
    let description = format!(
        "the deletion of shoot {} is not confirmed, so it stays as it is: annotate it with {CONFIRMATION_DELETION}=true \
         to delete it",
        shoot.name_any()
    );
    let told = shoot.status.as_ref().is_some_and(
        |status| matches!(status.last_errors.as_slice(), [only] if only.description == description),
    );
    let error = LastError {
        description,
        task_id: Some(TASK.to_owned()),
        codes: Vec::new(),
        last_update_time: Some(now.clone()),
    };
    (!told).then(|| json!({"lastErrors": [error]}))
}
