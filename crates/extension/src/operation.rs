//! What is to be done with an extension object, decided from the object and, for a deletion, its shoot
//! (RX-10..13, RX-40).
//!
//! The decision is pure, so that a wrong order of annotation, finalizer and status shows in a table and not
//! in a cluster. It gives the same answer however often an event is delivered, merged or lost: it looks at
//! levels, not at edges.

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

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing, and why.
    Skip(Skip),
    /// This, reported under the operation's [type](Operation::type_).
    Run(Operation),
}

/// Why nothing is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Skip {
    /// A gardenlet is about to put state into the status.
    WaitForState,
    /// All was done, and nobody asks for more.
    UpToDate,
    /// Another seed has taken over: this object is only waiting to be removed.
    Migrated,
    /// It is being deleted and we have nothing to take away.
    NothingToDelete,
    /// The shoot has failed for good: nothing is reconciled until it is retried.
    ShootFailed,
}

/// Decides what is to be done with an object of ours. `cluster`: what is known of its shoot.
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

/// Whether the shoot has failed for good with the specification that it has now.
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

/// Whether the deletion of an object is forced: the gardenlet says so on the object itself. One that does not
/// is understood by what it wrote of the shoot; it must be the shoot that is being deleted, or the annotation
/// would outlive a restore.
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

/// Whether an object is this provider's: of its type, and for one of the classes of cluster that it serves.
#[must_use]
pub fn is_ours<K: ExtensionObject>(object: &K, type_: &str, classes: &[ExtensionClass]) -> bool {
    let spec = object.default_spec();
    spec.type_ == type_ && classes.contains(&spec.class.unwrap_or(ExtensionClass::Shoot))
}

/// What wakes the controller: an operation asked for, a deletion, or that it is forced from now on. Neither
/// its own status writes nor a change of the specification that nobody asks to act on.
#[must_use]
pub fn fingerprint<K: ExtensionObject>(object: &K) -> Option<u64> {
    runtime::runner::fingerprint((
        requested(object),
        object.annotations().get(TIMESTAMP),
        object.meta().deletion_timestamp.is_some(),
        forced_by(object),
    ))
}

fn is_admitted(asked: Option<&str>) -> bool {
    matches!(asked, Some(RECONCILE | MIGRATE | RESTORE))
}

/// The order of precedence: what was asked for, then what was begun and not finished.
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
