//! Pure decisions about a BackupEntry: the responsible seed, and its operation.

use api::{
    constants::{BACKUP_ENTRY_ASSIGNED_IN_EPOCH, OPERATION, OWNERSHIP_EPOCH, operation::RESTORE},
    extensions::{self, ExtensionObject},
    gardencore::BackupEntry,
    meta::{LastOperation, LastOperationState, LastOperationType},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use placement::{Operation, entry_of_preparation};
use runtime::Error;
use serde_json::{Value, json};

use crate::extension_object::{Progress, asked_at, progress};

/// Name prefix of an entry for the backups of the source of a move.
pub const SOURCE_PREFIX: &str = "source-";

/// Whether the entry names the backups of a former seed.
#[must_use]
pub fn names_source(entry: &BackupEntry) -> bool {
    entry.name_any().starts_with(SOURCE_PREFIX)
}

/// Whether the entry names the place of backups of a preparation, and not of a residency.
#[must_use]
pub fn is_of_preparation(entry: &BackupEntry) -> bool {
    let name = entry.metadata.name.as_deref();
    name.is_some_and(|name| entry_of_preparation(name).is_some())
}

/// The responsible seed: the seed in the status until that seed has handed over.
#[must_use]
pub fn responsible_seed(entry: &BackupEntry) -> Option<&str> {
    let wanted = entry.spec.seed_name.as_deref().filter(|n| !n.is_empty())?;
    let has = entry
        .status
        .as_ref()
        .and_then(|s| s.seed_name.as_deref())
        .filter(|n| !n.is_empty());
    Some(has.unwrap_or(wanted))
}

/// Whether the flow of this seed has not begun with the entry since garden-controller-manager assigned the
/// entry to this seed. The flow writes the owner record before it begins with the backups (R17-21).
#[must_use]
pub(super) fn awaits_flow(entry: &BackupEntry) -> bool {
    let epoch = |annotation: &str| {
        let epoch = entry.annotations().get(annotation);
        epoch.and_then(|epoch| epoch.parse::<i64>().ok())
    };
    let begun = epoch(OWNERSHIP_EPOCH).unwrap_or(0);
    epoch(BACKUP_ENTRY_ASSIGNED_IN_EPOCH).is_some_and(|assigned| begun < assigned)
}

/// The ownership epoch of the entry: the epoch of the assignment, or the later epoch of the flow.
#[must_use]
pub(super) fn epoch_of(entry: &BackupEntry) -> Option<String> {
    let epochs = [BACKUP_ENTRY_ASSIGNED_IN_EPOCH, OWNERSHIP_EPOCH].into_iter();
    let epochs = epochs.filter_map(|annotation| entry.annotations().get(annotation)?.parse::<i64>().ok());
    epochs.max().map(|epoch| epoch.to_string())
}

/// Whether a different seed is responsible and no hand-over is in progress, so that the entry's objects in
/// this seed are leftovers. Always false for an entry that is being deleted: only the responsible seed may
/// complete the deletion.
#[must_use]
pub fn is_taken_from(entry: &BackupEntry, seed: &str) -> bool {
    let is_deleted = entry.metadata.deletion_timestamp.is_some();
    !is_deleted && responsible_seed(entry).is_some_and(|other| other != seed)
}

/// The namespace of the shoot's control plane, whose etcd needs the entry's credentials. `None` for a source
/// entry, from which backups are only copied.
#[must_use]
pub fn namespace_of(entry: &BackupEntry) -> Option<String> {
    let name = Some(entry.name_any()).filter(|_| !names_source(entry))?;
    // A uid never contains two dashes in a row; a technical id does.
    let (namespace, _) = name.rsplit_once("--")?;
    Some(namespace.to_owned()).filter(|namespace| !namespace.is_empty())
}

/// The operation of the responsible seed on an entry that is not being deleted.
#[must_use]
pub fn operation(entry: &BackupEntry) -> Operation {
    let status = entry.status.as_ref();
    let has = status
        .and_then(|s| s.seed_name.as_deref())
        .filter(|n| !n.is_empty());
    if has.is_some_and(|has| entry.spec.seed_name.as_deref() != Some(has)) {
        return Operation::Migrate;
    }
    if entry.annotations().get(OPERATION).is_some_and(|o| o == RESTORE) {
        return Operation::Restore;
    }
    match status.and_then(|s| s.last_operation.as_ref()) {
        Some(o) if o.type_ == LastOperationType::Migrate => Operation::Restore,
        Some(o) if o.type_ == LastOperationType::Restore && o.state != LastOperationState::Succeeded => {
            Operation::Restore
        }
        None => Operation::Create,
        Some(o) if o.type_ == LastOperationType::Create && o.state != LastOperationState::Succeeded => {
            Operation::Create
        }
        Some(_) => Operation::Reconcile,
    }
}

/// Whether a new run must be recorded before the provider acts: a user requested a run, or the entry or the
/// type of its operation changed.
pub(super) fn must_begin(entry: &BackupEntry, type_: LastOperationType) -> bool {
    let status = entry.status.clone().unwrap_or_default();
    let Some(last) = status.last_operation else {
        return true;
    };
    let running = matches!(
        last.state,
        LastOperationState::Processing | LastOperationState::Error
    );
    entry.annotations().contains_key(OPERATION)
        || last.type_ != type_
            && !(last.state == LastOperationState::Succeeded && type_ == LastOperationType::Reconcile)
        || !running && status.observed_generation != entry.metadata.generation
}

/// Why the provider must act in the run that began at `began`; `None` if the provider was asked in this run
/// and nothing changed since.
pub(super) fn why_deploy(
    began: Option<&LastOperation>,
    found: Option<&extensions::BackupEntry>,
    (wanted, epoch): (&extensions::BackupEntrySpec, Option<&String>),
    credentials_changed: bool,
) -> Option<&'static str> {
    let Some(found) = found else {
        return Some("it is not there");
    };
    if found.spec != *wanted {
        return Some("its specification changed");
    }
    if epoch.is_some() && found.annotations().get(OWNERSHIP_EPOCH) != epoch {
        return Some("its ownership epoch changed");
    }
    if credentials_changed {
        return Some("its credentials changed");
    }
    let running = began.filter(|o| o.state != LastOperationState::Succeeded)?;
    let asked = asked_at(found).is_some_and(|asked| asked.as_second() >= first_second(running));
    (!asked).then_some("this run did not ask yet")
}

/// The second in which a run began: the update time of the first record stays until the run ends (see
/// [`answer`]).
fn first_second(operation: &LastOperation) -> i64 {
    operation.last_update_time.0.as_second()
}

/// The record of the begin of a run. The last error goes: a former seed may have filled the status with the
/// error up to the bound of seeds, and this write would be refused.
pub(super) fn begun(type_: LastOperationType, now: Time) -> Value {
    let operation = LastOperation {
        description: format!("{type_} of Backup Entry in progress."),
        last_update_time: now,
        progress: 0,
        state: LastOperationState::Processing,
        type_,
    };
    json!({ "lastOperation": operation, "lastError": null })
}

/// The status update for the provider's status; `None` if the status is up to date. The time changes only
/// with success: the begin of a run distinguishes its request from the requests of earlier runs.
pub(super) fn answer(
    entry: &BackupEntry,
    found: &extensions::BackupEntry,
    type_: LastOperationType,
    seed: &str,
    now: Time,
) -> Option<Value> {
    let old = entry.status.clone().unwrap_or_default();
    let began = old
        .last_operation
        .as_ref()
        .map_or_else(|| now.clone(), |o| o.last_update_time.clone());
    let (state, percent, description, error, time) = match progress(found) {
        Progress::Ready => {
            let description = format!("Backup Entry has been successfully {}.", past(type_));
            (LastOperationState::Succeeded, 100, description, None, now)
        }
        Progress::Failing(error) => {
            let description = format!("{} Operation will be retried.", error.description);
            (LastOperationState::Error, 50, description, Some(error), began)
        }
        Progress::Waiting(why) => (
            LastOperationState::Processing,
            50,
            format!("Waiting for the provider: {why}."),
            None,
            began,
        ),
    };
    let same = old.last_operation.as_ref().is_some_and(|o| {
        o.state == state
            && o.type_ == type_
            && (o.description == description || state == LastOperationState::Succeeded)
    }) && old.last_error.as_ref().map(|e| &e.description)
        == error.as_ref().map(|e| &e.description)
        && (state != LastOperationState::Succeeded
            || old.observed_generation == entry.metadata.generation
                && old.seed_name.as_deref() == Some(seed));
    if same {
        return None;
    }
    let operation = LastOperation {
        description,
        last_update_time: time,
        progress: percent,
        state,
        type_,
    };
    let mut body = json!({ "lastOperation": operation, "lastError": error, "seedName": seed });
    if state == LastOperationState::Succeeded {
        body["observedGeneration"] = json!(entry.metadata.generation);
    }
    Some(body)
}

/// The record of an error of this process; `None` if the status holds the error already, or the error is no
/// failure.
pub(super) fn failure(
    entry: &BackupEntry,
    error: &Error,
    type_: LastOperationType,
    now: Time,
) -> Option<Value> {
    let status = entry.status.as_ref();
    let told = status.and_then(|s| s.last_error.as_ref());
    let began = status
        .and_then(|s| s.last_operation.as_ref())
        .map_or_else(|| now.clone(), |o| o.last_update_time.clone());
    crate::failure::failure(error, told, type_, began, now)
}

/// As [`failure`], in a deletion. Only the error is recorded: an operation of type `Delete` states that the
/// provider was asked.
pub(super) fn deletion_failure(entry: &BackupEntry, error: &Error, now: Time) -> Option<Value> {
    let body = failure(entry, error, LastOperationType::Delete, now)?;
    Some(json!({ "lastError": body["lastError"] }))
}

/// The record that the entry was handed over: the last write of this seed to the entry.
pub(super) fn handed_over(entry: &BackupEntry, now: Time) -> Value {
    let operation = LastOperation {
        description: "Backup Entry has been successfully prepared for migration.".into(),
        last_update_time: now,
        progress: 100,
        state: LastOperationState::Succeeded,
        type_: LastOperationType::Migrate,
    };
    json!({ "lastOperation": operation, "lastError": null, "seedName": entry.spec.seed_name })
}

/// The last error of the seed's object, with the note; `None` if there is none, or the status holds the error
/// already.
pub(super) fn deletion_error(
    entry: &BackupEntry,
    found: &extensions::BackupEntry,
    note: Option<&str>,
) -> Option<Value> {
    let mut error = found.default_status()?.last_error.clone()?;
    if let Some(note) = note {
        error.description = format!("{}. {note}", error.description.trim_end_matches('.'));
    }
    let told = entry.status.as_ref().and_then(|s| s.last_error.as_ref());
    (told.map(|e| &e.description) != Some(&error.description)).then(|| json!({ "lastError": error }))
}

fn past(type_: LastOperationType) -> &'static str {
    match type_ {
        LastOperationType::Restore => "restored",
        LastOperationType::Migrate => "prepared for migration",
        _ => "reconciled",
    }
}

#[cfg(test)]
#[path = "decision_tests.rs"]
mod tests;
