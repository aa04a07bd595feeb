//! The decision as a table.

use api::{
    constants::CONFIRMATION_FORCE_DELETION,
    extensions::{Cluster, ExtensionClass, Infrastructure},
    meta::LastOperationState::{self, Error, Processing, Succeeded},
    meta::LastOperationType::{self, Create, Delete, Migrate, Reconcile, Restore},
};
use kube::ResourceExt;
use serde_json::{Value, json};

use placement::Operation;

use super::{Decision, Skip, decide, fingerprint, is_ours};

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

/// R7-34: `migrate` ends every operation, including a failed operation that would be retried. After
/// `migrate`, no reconcile runs and no outside resource is deleted. R7-31: `restore` differs from
/// `reconcile`, and a failed `restore` is not followed by a mere `reconcile`.
#[test]
fn what_is_done_follows_from_annotation_deletion_and_last_operation() {
    use Decision::{Run, Skip as No};
    #[rustfmt::skip]
    let table: &[(Option<&str>, bool, bool, Last, Decision)] = &[
        // asked          deleting finalizer last                     decision
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
        // The source: migrate has precedence, and is completed when the annotation got lost.
        (Some("migrate"),  false, true,  Some((Reconcile, Error)),    Run(Operation::Migrate)),
        (Some("migrate"),  false, true,  Some((Create, Succeeded)),   Run(Operation::Migrate)),
        (Some("migrate"),  true,  true,  Some((Delete, Error)),       Run(Operation::Migrate)),
        (Some("migrate"),  false, false, Some((Migrate, Succeeded)),  Run(Operation::Migrate)),
        (None,             false, true,  Some((Migrate, Error)),      Run(Operation::Migrate)),
        // After migrate, no outside resource is touched any more.
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
        let decision = decide(&object(*asked, *deleting, *finalizer, *last), None);
        assert_eq!(
            decision, *expected,
            "asked {asked:?}, deleting {deleting}, last {last:?}"
        );
    }
}

fn forced(mut object: Infrastructure, value: &str) -> Infrastructure {
    object
        .annotations_mut()
        .insert(CONFIRMATION_FORCE_DELETION.into(), value.into());
    object
}

fn cluster(shoot: &Value) -> Cluster {
    let object = json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": {"name": "shoot--p--s"},
        "spec": {"cloudProfile": {}, "shoot": {"metadata": shoot}},
    });
    serde_json::from_value(object).expect("a Cluster")
}

#[test]
fn only_a_deletion_is_forced() {
    let deleted = || object(None, true, true, Some((Delete, Error)));
    let run = |operation| Decision::Run(operation);
    assert_eq!(
        decide(&forced(deleted(), "true"), None),
        run(Operation::ForceDelete)
    );
    assert_eq!(decide(&forced(deleted(), "false"), None), run(Operation::Delete));
    let lives = forced(
        object(Some("reconcile"), false, true, Some((Create, Succeeded))),
        "true",
    );
    assert_eq!(decide(&lives, None), run(Operation::Reconcile));
    // A resource of the new owner seed is only released in this seed, forced or not (I9).
    let leaving = forced(object(Some("migrate"), true, true, Some((Delete, Error))), "true");
    assert_eq!(decide(&leaving, None), run(Operation::Migrate));
    let moved = forced(object(None, true, true, Some((Migrate, Succeeded))), "true");
    assert_eq!(decide(&moved, None), Decision::Skip(Skip::Migrated));
    let taken_away = forced(object(None, true, false, Some((Delete, Succeeded))), "true");
    assert_eq!(decide(&taken_away, None), Decision::Skip(Skip::NothingToDelete));
}

#[test]
fn a_gardenlet_that_annotates_the_shoot_only_is_understood() {
    let annotations = json!({(CONFIRMATION_FORCE_DELETION): "true"});
    let time = "2026-01-01T00:00:00Z";
    for (shoot, expected) in [
        (
            json!({"deletionTimestamp": time, "annotations": annotations}),
            Operation::ForceDelete,
        ),
        (json!({"annotations": annotations}), Operation::Delete),
        (
            json!({"deletionTimestamp": null, "annotations": annotations}),
            Operation::Delete,
        ),
        (json!({"deletionTimestamp": time}), Operation::Delete),
    ] {
        let decision = decide(&object(None, true, true, None), Some(&cluster(&shoot)));
        assert_eq!(decision, Decision::Run(expected), "{shoot}");
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
    let deleted = object(None, true, true, None);
    assert_ne!(fingerprint(&quiet), fingerprint(&deleted));
    // The deletion may have failed for long, and must not wait for the next retry.
    assert_ne!(
        fingerprint(&deleted),
        fingerprint(&forced(deleted.clone(), "true"))
    );
}

#[test]
fn while_the_shoot_has_failed_nothing_is_built() {
    let cluster = |state: &str, observed: i64| -> Cluster {
        let shoot = json!({
            "metadata": {"generation": 2}, "status": {"observedGeneration": observed, "lastOperation": {"state": state}},
        });
        let object =
            json!({"metadata": {"name": "shoot--p--s"}, "spec": {"cloudProfile": {}, "shoot": shoot}});
        serde_json::from_value(object).expect("a Cluster")
    };
    let asked = |operation| object(Some(operation), false, true, Some((Create, Succeeded)));
    let failed = cluster("Failed", 2);
    for operation in ["reconcile", "restore"] {
        let decision = decide(&asked(operation), Some(&failed));
        assert_eq!(decision, Decision::Skip(Skip::ShootFailed), "{operation}");
    }
    let migrate = decide(&asked("migrate"), Some(&failed));
    assert_eq!(
        migrate,
        Decision::Run(Operation::Migrate),
        "a failed shoot can be moved"
    );
    let deleted = object(None, true, true, Some((Create, Error)));
    assert_eq!(decide(&deleted, Some(&failed)), Decision::Run(Operation::Delete));
    for retried in [cluster("Failed", 1), cluster("Error", 2), cluster("Succeeded", 2)] {
        let decision = decide(&asked("reconcile"), Some(&retried));
        assert_eq!(decision, Decision::Run(Operation::Reconcile));
    }
}

/// Each rule of Gardener's extension library, applied to each possible object. R7-34: after a failed migrate,
/// migrate runs again; after a successful migrate, only migrate and restore run.
#[test]
fn every_case_follows_from_the_rules() {
    let asked = [
        None,
        Some("reconcile"),
        Some("migrate"),
        Some("restore"),
        Some("wait-for-state"),
        Some("other"),
    ];
    let states = [Processing, Succeeded, Error, LastOperationState::Failed];
    let types = [Create, Reconcile, Delete, Migrate, Restore];
    let last = types
        .iter()
        .flat_map(|type_| states.iter().map(|state| Some((*type_, *state))));
    let last: Vec<Last> = last.chain([None]).collect();
    for asked in asked {
        for last in &last {
            for (deleting, finalizer) in [(false, false), (false, true), (true, false), (true, true)] {
                let decision = decide(&object(asked, deleting, finalizer, *last), None);
                check_rules(asked, deleting, finalizer, *last, decision);
            }
        }
    }
}

fn check_rules(asked: Option<&str>, deleting: bool, finalizer: bool, last: Last, decision: Decision) {
    let case =
        format!("asked {asked:?}, deleting {deleting}, finalizer {finalizer}, last {last:?}: {decision:?}");
    let ran = match decision {
        Decision::Run(operation) => Some(operation),
        Decision::Skip(_) => None,
    };
    let succeeded = last.is_some_and(|(_, state)| state == Succeeded);
    let let_go = last == Some((Migrate, Succeeded));
    if asked == Some("wait-for-state") {
        assert_eq!(ran, None, "{case}");
        return;
    }
    // A migrate is never stopped, and runs although the object is in deletion.
    assert_eq!(
        ran == Some(Operation::Migrate),
        asked == Some("migrate")
            || !deleting
                && asked != Some("restore")
                && last.is_some_and(|(type_, _)| type_ == Migrate)
                && !succeeded,
        "{case}"
    );
    if let_go && ran.is_some() {
        assert!(
            matches!(ran, Some(Operation::Migrate | Operation::Restore)),
            "{case}"
        );
    }
    if deleting && asked != Some("migrate") {
        assert_eq!(ran == Some(Operation::Delete), finalizer && !let_go, "{case}");
    }
    if ran == Some(Operation::Delete) {
        assert!(deleting && finalizer, "{case}");
    }
    if ran == Some(Operation::Restore) {
        let unfinished = last.is_some_and(|(type_, _)| type_ == Restore) && !succeeded;
        assert!(asked == Some("restore") || unfinished, "{case}");
    }
    if !deleting {
        let asks = matches!(asked, Some("reconcile" | "migrate" | "restore"));
        let may = !let_go || matches!(asked, Some("migrate" | "restore"));
        assert_eq!(ran.is_some(), may && (asks || !succeeded), "{case}");
    }
}
