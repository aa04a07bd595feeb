//! The decision as a table.

use api::{
    extensions::{ExtensionClass, Infrastructure},
    meta::LastOperationState::{self, Error, Processing, Succeeded},
    meta::LastOperationType::{self, Create, Delete, Migrate, Reconcile, Restore},
};
use serde_json::json;

use super::{Decision, Operation, Skip, decide, fingerprint, is_ours};

type Last = Option<(LastOperationType, LastOperationState)>;

fn object(asked: Option<&str>, deleting: bool, finalizer: bool, last: Last) -> Infrastructure {
    let mut object = json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Infrastructure",
        "metadata": {"name": "i", "namespace": "shoot--p--s"},
        "spec": {"type": "local", "region": "r", "secretRef": {"name": "cloudprovider", "namespace": "shoot--p--s"}},
    });
    if let Some(asked) = asked {
        object["metadata"]["annotations"] = json!({"gardener.cloud/operation": asked});
    }
    if deleting {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    }
    if finalizer {
        object["metadata"]["finalizers"] = json!(["extensions.gardener.cloud/infrastructure"]);
    }
    if let Some((type_, state)) = last {
        object["status"] = json!({"lastOperation": {
            "type": type_, "state": state, "progress": 0, "description": "", "lastUpdateTime": "2026-01-01T00:00:00Z",
        }});
    }
    serde_json::from_value(object).expect("an Infrastructure")
}

#[test]
fn what_is_done_follows_from_annotation_deletion_and_last_operation() {
    use Decision::{Run, Skip as No};
    #[rustfmt::skip]
    let table: &[(Option<&str>, bool, bool, Last, Decision)] = &[
        // asked          deleting finalizer last                     what is done
        (None,             false, false, None,                        Run(Operation::Create)),
        (None,             false, true,  Some((Create, Processing)),  Run(Operation::Create)),
        (None,             false, true,  Some((Create, Error)),       Run(Operation::Create)),
        (None,             false, true,  Some((Create, Succeeded)),   No(Skip::UpToDate)),
        (Some("reconcile"),false, true,  Some((Create, Succeeded)),   Run(Operation::Reconcile)),
        (Some("reconcile"),false, true,  Some((Create, Error)),       Run(Operation::Create)),
        (Some("unknown"),  false, true,  Some((Create, Succeeded)),   No(Skip::UpToDate)),
        (None,             false, true,  Some((Reconcile, Error)),    Run(Operation::Reconcile)),
        (None,             false, true,  Some((Restore, Error)),      Run(Operation::Restore)),
        (Some("reconcile"),false, true,  Some((Restore, Error)),      Run(Operation::Restore)),
        // The source: migrate wins over everything, and is finished when its annotation got lost.
        (Some("migrate"),  false, true,  Some((Reconcile, Error)),    Run(Operation::Migrate)),
        (Some("migrate"),  false, true,  Some((Create, Succeeded)),   Run(Operation::Migrate)),
        (Some("migrate"),  true,  true,  Some((Delete, Error)),       Run(Operation::Migrate)),
        (Some("migrate"),  false, false, Some((Migrate, Succeeded)),  Run(Operation::Migrate)),
        (None,             false, true,  Some((Migrate, Error)),      Run(Operation::Migrate)),
        // After it nothing outside is touched any more.
        (None,             false, false, Some((Migrate, Succeeded)),  No(Skip::Migrated)),
        (None,             true,  true,  Some((Migrate, Succeeded)),  No(Skip::Migrated)),
        (Some("reconcile"),false, true,  Some((Migrate, Succeeded)),  No(Skip::Migrated)),
        (Some("restore"),  false, false, Some((Migrate, Succeeded)),  Run(Operation::Restore)),
        // The destination.
        (Some("wait-for-state"), false, false, None,                  No(Skip::WaitForState)),
        (Some("wait-for-state"), true,  false, None,                  No(Skip::WaitForState)),
        (Some("restore"),  false, false, None,                        Run(Operation::Restore)),
        (Some("restore"),  false, true,  Some((Restore, Succeeded)),  Run(Operation::Restore)),
        // Deletion wins over restore and reconcile.
        (None,             true,  true,  Some((Create, Succeeded)),   Run(Operation::Delete)),
        (Some("reconcile"),true,  true,  Some((Create, Succeeded)),   Run(Operation::Delete)),
        (Some("restore"),  true,  true,  Some((Restore, Error)),      Run(Operation::Delete)),
        (None,             true,  true,  Some((Delete, Error)),       Run(Operation::Delete)),
        (None,             true,  false, Some((Create, Succeeded)),   No(Skip::NothingToDelete)),
    ];
    for (asked, deleting, finalizer, last, expected) in table {
        let decision = decide(&object(*asked, *deleting, *finalizer, *last));
        assert_eq!(
            decision, *expected,
            "asked {asked:?}, deleting {deleting}, last {last:?}"
        );
    }
}

#[test]
fn only_type_and_class_of_the_provider_are_its_own() {
    let mut infrastructure = object(None, false, false, None);
    assert!(is_ours(&infrastructure, "local", &[ExtensionClass::Shoot]));
    assert!(!is_ours(&infrastructure, "aws", &[ExtensionClass::Shoot]));
    infrastructure.spec.default.class = Some(ExtensionClass::Garden);
    assert!(!is_ours(&infrastructure, "local", &[ExtensionClass::Shoot]));
    assert!(is_ours(
        &infrastructure,
        "local",
        &[ExtensionClass::Shoot, ExtensionClass::Garden]
    ));
}

#[test]
fn status_and_specification_do_not_wake_and_requests_do() {
    let quiet = object(None, false, true, Some((Create, Succeeded)));
    let mut busy = object(None, false, true, Some((Create, Processing)));
    busy.spec.region = "another".into();
    assert_eq!(fingerprint(&quiet), fingerprint(&busy));
    assert_ne!(
        fingerprint(&quiet),
        fingerprint(&object(Some("reconcile"), false, true, None))
    );
    assert_ne!(fingerprint(&quiet), fingerprint(&object(None, true, true, None)));
}
