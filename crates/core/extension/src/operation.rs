//! Decides on the operation for an extension object, from the object and, for a deletion, from the shoot
//! (RX-10..13, RX-40).
//!
//! The decision is pure, so that a table test shows a wrong order of annotation, finalizer and status. The
//! decision is level-based: the answer is the same however often an event is delivered, merged or lost.

use api::{
    constants::{
        CONFIRMATION_FORCE_DELETION, OPERATION, TIMESTAMP,
        operation::{MIGRATE, RECONCILE, RESTORE, WAIT_FOR_STATE},
    },
    extensions::{Cluster, ExtensionClass, ExtensionObject},
    meta::{LastOperationState, LastOperationType},
};
use kube::ResourceExt;
use placement::Operation;
use serde_json::Value;

use crate::kind;

/// The decision for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// No operation, with the reason.
    Skip(Skip),
    /// This, reported under the operation's [type](Operation::type_).
    Run(Operation),
}

/// The reason for no operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// A gardenlet is about to put state into the status.
    WaitForState,
    /// All operations are complete, and no further operation is requested.
    UpToDate,
    /// The destination seed has taken over: this object only waits for removal.
    Migrated,
    /// The object is being deleted, and the provider has no resource to remove.
    NothingToDelete,
    /// The shoot has failed permanently: no reconcile runs until the shoot is retried.
    ShootFailed,
}

/// Decides on the operation for an object of this provider. `cluster`: the Cluster of the shoot.
#[must_use]
pub fn decide<K: ExtensionObject>(object: &K, cluster: Option<&Cluster>) -> Decision {
    let asked = requested(object);
    if asked == Some(WAIT_FOR_STATE) {
        return Decision::Skip(Skip::WaitForState);
    }
    let last = object
        .default_status()
        .and_then(|status| status.last_operation.as_ref());
    let last = last.map(|last| (last.type_, last.state == LastOperationState::Succeeded));
    let deleting = object.meta().deletion_timestamp.is_some();
    let operation = type_of(asked, deleting, last);

    let migrated = last == Some((LastOperationType::Migrate, true));
    if migrated && !matches!(operation, Operation::Migrate | Operation::Restore) {
        return Decision::Skip(Skip::Migrated);
    }
    let operation = match operation {
        Operation::Delete if is_forced(object, cluster) => Operation::ForceDelete,
        other => other,
    };
    if operation.deletes() && !object.finalizers().contains(&kind::finalizer_of(object)) {
        return Decision::Skip(Skip::NothingToDelete);
    }
    let wanted = deleting || is_admitted(asked) || last.is_none_or(|(_, succeeded)| !succeeded);
    if !wanted {
        return Decision::Skip(Skip::UpToDate);
    }
    let builds = operation != Operation::Migrate && !operation.deletes();
    if builds && cluster.is_some_and(has_failed) {
        return Decision::Skip(Skip::ShootFailed);
    }
    Decision::Run(operation)
}

/// Whether the shoot has failed permanently in the present generation.
fn has_failed(cluster: &Cluster) -> bool {
    let shoot = &cluster.spec.shoot.0;
    let state = shoot
        .pointer("/status/lastOperation/state")
        .and_then(Value::as_str);
    state == Some("Failed")
        && shoot.pointer("/status/observedGeneration") == shoot.pointer("/metadata/generation")
}

/// The value of the operation annotation.
#[must_use]
pub fn requested<K: ExtensionObject>(object: &K) -> Option<&str> {
    object.annotations().get(OPERATION).map(String::as_str)
}

/// Whether the deletion of an object is forced: the gardenlet sets the annotation on the object. A gardenlet
/// that does not set the annotation is understood by the annotation of the shoot. In that case the shoot must
/// be in deletion, or the annotation would outlive a restore.
#[must_use]
pub fn is_forced<K: ExtensionObject>(object: &K, cluster: Option<&Cluster>) -> bool {
    let says_so = |annotation: Option<&str>| annotation == Some("true");
    let of_shoot = |cluster: &Cluster| {
        let metadata = cluster.spec.shoot.0.get("metadata")?;
        metadata.get("deletionTimestamp").filter(|time| !time.is_null())?;
        Some(says_so(
            metadata
                .get("annotations")?
                .get(CONFIRMATION_FORCE_DELETION)?
                .as_str(),
        ))
    };
    says_so(forced_by(object)) || cluster.and_then(of_shoot).unwrap_or(false)
}

fn forced_by<K: ExtensionObject>(object: &K) -> Option<&str> {
    object
        .annotations()
        .get(CONFIRMATION_FORCE_DELETION)
        .map(String::as_str)
}

/// Whether an object belongs to this provider: the type matches, and the provider serves the class of
/// cluster.
#[must_use]
pub fn is_ours<K: ExtensionObject>(object: &K, type_: &str, classes: &[ExtensionClass]) -> bool {
    let spec = object.default_spec();
    spec.type_ == type_ && classes.contains(&spec.class.unwrap_or(ExtensionClass::Shoot))
}

/// The values that wake the controller: a requested operation, a deletion, a forced deletion. Neither the
/// controller's own status writes nor a change of the specification without a request wake the controller.
#[must_use]
pub fn fingerprint<K: ExtensionObject>(object: &K) -> Option<u64> {
    runtime::controller::runner::fingerprint((
        requested(object),
        object.annotations().get(TIMESTAMP),
        object.meta().deletion_timestamp.is_some(),
        forced_by(object),
    ))
}

fn is_admitted(asked: Option<&str>) -> bool {
    matches!(asked, Some(RECONCILE | MIGRATE | RESTORE))
}

/// The order of precedence: first the requested operation, then an unfinished operation.
#[allow(clippy::match_same_arms)] // the order is the point
fn type_of(asked: Option<&str>, deleting: bool, last: Option<(LastOperationType, bool)>) -> Operation {
    match (asked, last) {
        (Some(MIGRATE), _) => Operation::Migrate,
        _ if deleting => Operation::Delete,
        (Some(RESTORE), _) => Operation::Restore,
        (_, None | Some((LastOperationType::Create, false))) => Operation::Create,
        (_, Some((LastOperationType::Migrate, false))) => Operation::Migrate,
        (_, Some((LastOperationType::Restore, false))) => Operation::Restore,
        _ => Operation::Reconcile,
    }
}

#[cfg(test)]
#[path = "operation_tests.rs"]
mod tests;
