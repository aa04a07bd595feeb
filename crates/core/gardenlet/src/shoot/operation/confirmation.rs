//! A Shoot is deleted only with a confirmation.
//!
//! Admission rejects the deletion of a Shoot without the annotation, but policies can be uninstalled, and an
//! accepted deletion cannot be undone. So the gardenlet checks again. Without the annotation the finalizer of
//! the gardenlet stays, the control plane continues unchanged, and `lastErrors` names the missing annotation.

use api::{constants::CONFIRMATION_DELETION, gardencore::Shoot};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use placement::last_errors;
use serde_json::{Value, json};

/// Task name of the error in `lastErrors` that reports an unconfirmed deletion.
const TASK: &str = "Checking whether the deletion is confirmed";

/// The status of a Shoot with an unconfirmed deletion; `None` if the status reports the error already. The
/// first write of the next operation removes the error.
#[must_use]
pub fn is_missing(shoot: &Shoot, now: &Time) -> Option<Value> {
    let description = format!(
        "the deletion of shoot {} is not confirmed, so it stays as it is: annotate it with {CONFIRMATION_DELETION}=true \
         to delete it",
        shoot.name_any()
    );
    let is_reported = last_errors::is_only_error(shoot, &description);
    let error = last_errors::new_error(TASK, &description, Vec::new(), now);
    (!is_reported).then(|| json!({"lastErrors": last_errors::patch_value(&[error])}))
}
