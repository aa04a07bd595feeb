//! The progress of an extension object that this process created: a pure function of its status.

use api::{
    constants::{OPERATION, TIMESTAMP},
    extensions::ExtensionObject,
    meta::{LastError, LastOperationState, LastOperationType},
};
use jiff::Timestamp;

/// The progress of the provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Progress {
    /// Done.
    Ready,
    /// The provider reported an error and retries by itself.
    Failing(LastError),
    /// Not done yet, with the awaited condition.
    Waiting(String),
}

/// The progress of the last request. `Ready` needs: no error, the current generation, the annotation removed,
/// a success later than the request.
pub(crate) fn progress<K: ExtensionObject>(object: &K) -> Progress {
    let Some(status) = object.default_status() else {
        return Progress::Waiting("its provider did not act on it yet; is one running for its type?".into());
    };
    if let Some(error) = &status.last_error {
        return Progress::Failing(error.clone());
    }
    let annotations = object.meta().annotations.clone().unwrap_or_default();
    if let Some(operation) = annotations.get(OPERATION) {
        return Progress::Waiting(format!("its provider did not carry out {operation} yet"));
    }
    if status.observed_generation != object.meta().generation {
        return Progress::Waiting("its provider did not see the last change yet".into());
    }
    let Some(operation) = &status.last_operation else {
        return Progress::Waiting("its provider did not act on it yet".into());
    };
    if operation.state != LastOperationState::Succeeded {
        return Progress::Waiting(format!("{} {}", operation.type_, operation.state));
    }
    if asked_at(object).is_some_and(|asked| operation.last_update_time.0.as_second() < asked.as_second()) {
        return Progress::Waiting("its provider did not act on the last ask yet".into());
    }
    Progress::Ready
}

/// Whether the provider has migrated the object: the provider removed its state here and left all external
/// resources alone (RX-10).
pub(crate) fn is_migrated<K: ExtensionObject>(object: &K) -> bool {
    let operation = object.default_status().and_then(|s| s.last_operation.as_ref());
    operation
        .is_some_and(|o| o.type_ == LastOperationType::Migrate && o.state == LastOperationState::Succeeded)
}

/// The time of the last request to the provider.
pub(crate) fn asked_at<K: ExtensionObject>(object: &K) -> Option<Timestamp> {
    object.meta().annotations.as_ref()?.get(TIMESTAMP)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use api::{
        extensions::{BackupEntry, BackupEntrySpec},
        meta::LastOperation,
    };
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;

    fn entry() -> BackupEntry {
        let mut entry = BackupEntry::new("e", BackupEntrySpec::default());
        entry.metadata.generation = Some(2);
        entry.metadata.annotations = Some(BTreeMap::from([(
            TIMESTAMP.to_owned(),
            "2026-01-01T10:00:00.700000000Z".to_owned(),
        )]));
        let status = entry.default_status_mut();
        status.observed_generation = Some(2);
        status.last_operation = Some(LastOperation {
            description: String::new(),
            last_update_time: Time("2026-01-01T10:00:00Z".parse().unwrap()),
            progress: 100,
            state: LastOperationState::Succeeded,
            type_: LastOperationType::Reconcile,
        });
        entry
    }

    #[test]
    fn seconds_are_compared_since_the_status_has_no_finer_ones() {
        assert_eq!(progress(&entry()), Progress::Ready);
        let mut older = entry();
        older
            .default_status_mut()
            .last_operation
            .as_mut()
            .unwrap()
            .last_update_time = Time("2026-01-01T09:59:59Z".parse().unwrap());
        assert!(matches!(progress(&older), Progress::Waiting(_)));
    }

    #[test]
    fn nothing_short_of_success_is_ready() {
        let changed = |change: fn(&mut BackupEntry)| {
            let mut entry = entry();
            change(&mut entry);
            progress(&entry)
        };
        assert!(matches!(changed(|e| e.status = None), Progress::Waiting(_)));
        assert!(matches!(
            changed(|e| e.metadata.generation = Some(3)),
            Progress::Waiting(_)
        ));
        assert!(matches!(
            changed(|e| e.default_status_mut().last_operation = None),
            Progress::Waiting(_)
        ));
        assert!(matches!(
            changed(|e| {
                e.default_status_mut().last_operation.as_mut().unwrap().state =
                    LastOperationState::Processing;
            }),
            Progress::Waiting(_)
        ));
        assert!(matches!(
            changed(|e| {
                e.metadata
                    .annotations
                    .as_mut()
                    .unwrap()
                    .insert(OPERATION.into(), "reconcile".into());
            }),
            Progress::Waiting(_)
        ));
        let error = LastError {
            description: "no".into(),
            task_id: None,
            codes: vec![],
            last_update_time: None,
        };
        let mut failing = entry();
        failing.default_status_mut().last_error = Some(error.clone());
        assert_eq!(progress(&failing), Progress::Failing(error));
    }

    #[test]
    fn handed_over_is_a_succeeded_migrate_only() {
        let mut entry = entry();
        assert!(!is_migrated(&entry));
        entry.default_status_mut().last_operation.as_mut().unwrap().type_ = LastOperationType::Migrate;
        assert!(is_migrated(&entry));
        entry.default_status_mut().last_operation.as_mut().unwrap().state = LastOperationState::Error;
        assert!(!is_migrated(&entry));
    }
}
