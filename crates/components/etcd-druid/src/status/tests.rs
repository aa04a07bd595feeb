//! Tables of observed objects and the expected status.
#![allow(clippy::large_stack_arrays, clippy::unwrap_used)]

use api::{druid::Etcd, meta::ErrorCode};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use runtime::Error;
use serde_json::{Value, json};
use sidecar_protocol::{SidecarHealth, SnapshotterPhase};

use super::{compute, deleting};
use crate::{
    names::DRUID_MIGRATING,
    objects::tests::{MAIN, etcd},
    observed::Observed,
};

fn time(text: &str) -> Time {
    Time(text.parse().unwrap())
}

pub(super) fn now() -> Time {
    time("2026-01-01T00:00:10Z")
}

pub(super) fn observed(set: &Value, pods: &[Value]) -> Observed {
    Observed {
        stateful_set: serde_json::from_value(set.clone()).unwrap(),
        outdated: Some(Vec::new()),
        members: pods
            .iter()
            .map(|pod| serde_json::from_value(pod.clone()).unwrap())
            .collect(),
        ..Observed::default()
    }
}

pub(super) fn set(replicas: i32) -> Value {
    json!({
        "metadata": {"name": "etcd-main", "generation": 2},
        "spec": {"selector": {}, "template": {}},
        "status": {"observedGeneration": 2, "replicas": replicas, "updatedReplicas": replicas, "currentReplicas": replicas},
    })
}

pub(super) fn pod(ready: bool, etcd_ready: bool, backup_ready: bool) -> Value {
    let container = |name: &str, ready: bool| json!({"name": name, "image": "", "imageID": "", "ready": ready, "restartCount": 0, "state": {"running": {}}});
    json!({"metadata": {"name": "etcd-main-0"}, "status": {
        "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
        "initContainerStatuses": [{"name": "initialize", "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"terminated": {"exitCode": 0}}}],
        "containerStatuses": [container("etcd", etcd_ready), container("backup-restore", backup_ready)],
    }})
}

fn failing_pod(message: &str) -> Value {
    json!({"metadata": {"name": "etcd-main-0"}, "status": {"initContainerStatuses": [{
        "name": "initialize", "image": "", "imageID": "", "ready": false, "restartCount": 1,
        "state": {"terminated": {"exitCode": 1, "message": message}},
    }]}})
}

/// `ready`, lastOperation, and the conditions in order.
fn line(etcd: &Etcd, outcome: Result<(), &Error>, observed: &Observed) -> String {
    let status = compute(etcd, outcome, observed, &now());
    let operation = status.last_operation.unwrap();
    let conditions: Vec<_> = status
        .conditions
        .iter()
        .filter(|c| c.type_ != "HasData")
        .map(|c| format!("{}={}", c.type_, c.status))
        .collect();
    format!(
        "{} {} {} {}",
        status.ready.unwrap(),
        operation.type_,
        operation.state,
        conditions.join(" ")
    )
}

#[test]
fn a_member_from_nothing_to_ready() {
    let etcd = etcd(MAIN);
    let said = |phase: SnapshotterPhase, error: Option<&str>| Observed {
        sidecar: Some(SidecarHealth {
            phase,
            error: error.map(str::to_owned),
            finished: false,
            ..SidecarHealth::default()
        }),
        ..observed(&set(1), &[pod(true, true, true)])
    };
    for (observed, expected) in [
        (
            Observed::default(),
            "false Create Processing Ready=False AllMembersReady=False BackupReady=Unknown",
        ),
        (
            observed(&set(1), &[pod(false, false, false)]),
            "false Create Processing Ready=False AllMembersReady=False BackupReady=Unknown",
        ),
        (
            observed(&set(1), &[pod(false, true, false)]),
            "false Create Processing Ready=False AllMembersReady=False BackupReady=Unknown",
        ),
        (
            observed(&set(1), &[pod(true, true, true)]),
            "true Create Succeeded Ready=True AllMembersReady=True BackupReady=Unknown",
        ),
        (
            said(SnapshotterPhase::Starting, None),
            "true Create Succeeded Ready=True AllMembersReady=True BackupReady=Unknown",
        ),
        (
            said(SnapshotterPhase::Active, None),
            "true Create Succeeded Ready=True AllMembersReady=True BackupReady=True",
        ),
        (
            said(SnapshotterPhase::Interrupted, Some("Tool: no")),
            "true Create Succeeded Ready=True AllMembersReady=True BackupReady=False",
        ),
        (
            said(SnapshotterPhase::Finished, None),
            "true Create Succeeded Ready=True AllMembersReady=True BackupReady=False",
        ),
    ] {
        assert_eq!(line(&etcd, Ok(()), &observed), expected);
    }
}

#[test]
fn an_etcd_that_was_ready_once_is_remembered_when_it_is_not_any_more() {
    let mut etcd = etcd(MAIN);
    let has_data = |etcd: &Etcd| {
        let status = etcd.status.clone().unwrap_or_default();
        super::past::has_data(&status.conditions)
    };
    for (pods, expected) in [
        (vec![pod(false, false, false)], false),
        (vec![pod(true, true, true)], true),
        (vec![], true),
        (vec![failing_pod("SnapshotMissing: none")], true),
    ] {
        etcd.status = Some(compute(&etcd, Ok(()), &observed(&set(1), &pods), &now()));
        assert_eq!(has_data(&etcd), expected, "{pods:?}");
    }
}

/// If the shoot stays, later writes are in no backup, and without the alarm the loss would be unnoticed.
#[test]
fn a_backup_process_that_has_finished_is_an_alarm_unless_the_etcd_is_handed_over() {
    let mut etcd = etcd(MAIN);
    let observed = Observed {
        // The field `finished` decides, even if `phase` names a different phase.
        sidecar: Some(SidecarHealth {
            phase: SnapshotterPhase::Active,
            error: None,
            finished: true,
            ..SidecarHealth::default()
        }),
        ..observed(&set(1), &[pod(true, true, true)])
    };
    let backups = |etcd: &Etcd| {
        let status = compute(etcd, Ok(()), &observed, &now());
        let found = status.conditions.into_iter().find(|c| c.type_ == "BackupReady");
        found.map(|c| (c.status, c.reason)).unwrap()
    };
    assert_eq!(
        backups(&etcd),
        ("False".to_owned(), "FinishedWhileServing".to_owned())
    );
    etcd.metadata.annotations = Some([(DRUID_MIGRATING.to_owned(), "true".to_owned())].into());
    assert_eq!(
        backups(&etcd),
        ("True".to_owned(), "FinalSnapshotTaken".to_owned())
    );
}

#[test]
fn ready_pods_of_an_older_revision_or_generation_are_not_enough() {
    let etcd = etcd(MAIN);
    for outdated in [Some(vec!["etcd-main-0".to_owned()]), None] {
        let observed = Observed {
            outdated: outdated.clone(),
            ..observed(&set(1), &[pod(true, true, true)])
        };
        let status = compute(&etcd, Ok(()), &observed, &now());
        assert_eq!(
            (status.ready, status.ready_replicas),
            (Some(false), Some(1)),
            "{outdated:?}"
        );
    }
}

#[test]
fn a_stopped_etcd_is_ready_once_its_pod_is_gone() {
    let mut etcd = etcd(MAIN);
    etcd.spec.replicas = 0;
    let stopping = observed(&set(0), &[pod(true, true, true)]);
    assert!(line(&etcd, Ok(()), &stopping).starts_with("false Create Processing"));
    let stopped = observed(&set(0), &[]);
    assert_eq!(
        line(&etcd, Ok(()), &stopped),
        "true Create Succeeded Ready=Unknown AllMembersReady=Unknown BackupReady=Unknown"
    );
}

#[test]
fn a_wrong_specification_keeps_the_generation_unobserved_and_says_why() {
    let mut etcd = etcd(MAIN);
    etcd.status = Some(compute(
        &etcd,
        Ok(()),
        &observed(&set(1), &[pod(true, true, true)]),
        &now(),
    ));
    etcd.metadata.generation = Some(2);
    let wrong = Error::config(ErrorCode::ErrConfigurationProblem, "spec.etcd.quota is odd");
    let status = compute(
        &etcd,
        Err(&wrong),
        &observed(&set(1), &[pod(true, true, true)]),
        &now(),
    );
    assert_eq!((status.observed_generation, status.ready), (Some(1), Some(false)));
    assert_eq!(status.last_errors[0].code, "ERR_CONFIGURATION_PROBLEM");
    let operation = status.last_operation.unwrap();
    assert_eq!(
        (operation.type_.as_str(), operation.state.as_str()),
        ("Reconcile", "Error")
    );
}

#[test]
fn what_a_failed_restore_said_stays_until_a_restore_succeeds() {
    let mut etcd = etcd(MAIN);
    let said = "SnapshotCorrupt: Full-1 does not match its hash; remove it";
    let mut step = |observed: &Observed, at: &str| {
        let status = compute(&etcd, Ok(()), observed, &time(at));
        etcd.status = Some(status.clone());
        status
            .last_errors
            .iter()
            .map(|e| (e.description.clone(), e.observed_at.clone()))
            .collect::<Vec<_>>()
    };
    let expected = [(format!("initialize: {said}"), time("2026-01-01T00:00:01Z"))];
    assert_eq!(
        step(&observed(&set(1), &[failing_pod(said)]), "2026-01-01T00:00:01Z"),
        expected
    );
    // The pod was replaced, and the new pod has not reported yet.
    let silent = json!({"metadata": {"name": "etcd-main-0"}});
    assert_eq!(
        step(&observed(&set(1), &[silent]), "2026-01-01T00:00:02Z"),
        expected
    );
    assert_eq!(step(&observed(&set(1), &[]), "2026-01-01T00:00:03Z"), expected);
    // The data are restored; etcd is about to start.
    assert_eq!(
        step(
            &observed(&set(1), &[pod(false, false, false)]),
            "2026-01-01T00:00:04Z"
        ),
        []
    );
}

#[test]
fn a_sidecar_that_cannot_back_up_is_told_and_does_not_make_etcd_unready() {
    let error = "StoreCredentials: the object store refuses the credentials".to_owned();
    let observed = Observed {
        sidecar: Some(SidecarHealth {
            phase: SnapshotterPhase::Interrupted,
            error: Some(error.clone()),
            finished: false,
            ..SidecarHealth::default()
        }),
        ..observed(&set(1), &[pod(true, true, true)])
    };
    let status = compute(&etcd(MAIN), Ok(()), &observed, &now());
    assert_eq!(status.ready, Some(true));
    assert_eq!(status.last_errors[0].code, "ERR_INFRA_UNAUTHENTICATED");
    assert_eq!(
        status.last_errors[0].description,
        format!("backup-restore: {error}")
    );
}

/// R17-27: the flow waits for this condition.
#[test]
fn a_copy_is_ready_when_its_job_is_complete() {
    let mut etcd = etcd(MAIN);
    etcd.spec.backup.source_store = etcd.spec.backup.store.clone();
    let job = |status: Value| Observed {
        job: serde_json::from_value(json!({"metadata": {"name": "etcd-copy"}, "status": status})).unwrap(),
        ..Observed::default()
    };
    assert_eq!(
        line(&etcd, Ok(()), &job(json!({"active": 1}))),
        "false Create Processing BackupsCopied=False"
    );
    let done = job(json!({"conditions": [{"type": "Complete", "status": "True"}]}));
    assert_eq!(
        line(&etcd, Ok(()), &done),
        "true Create Succeeded BackupsCopied=True"
    );
    let mut failing = job(json!({"active": 1}));
    failing.copies = vec![serde_json::from_value(json!({"metadata": {"name": "etcd-copy-x"}, "status": {"containerStatuses": [{
        "name": "backup-restore", "image": "", "imageID": "", "ready": false, "restartCount": 1,
        "state": {"terminated": {"exitCode": 1, "message": "StoreCredentials: the object store refuses the credentials"}},
    }]}})).unwrap()];
    let status = compute(&etcd, Ok(()), &failing, &now());
    assert_eq!(status.last_errors[0].code, "ERR_INFRA_UNAUTHENTICATED");
    assert_eq!(status.last_operation.unwrap().state, "Error");
}

#[test]
fn the_last_progress_of_a_copy_stays_until_the_copy_goes() {
    let progress = api::druid::CopyProgress {
        copied_bytes: 5,
        total_bytes: 10,
    };
    let mut etcd = etcd(MAIN);
    etcd.spec.backup.source_store = etcd.spec.backup.store.clone();
    let answered = Observed {
        copying: Some(progress),
        ..Observed::default()
    };
    etcd.status = Some(compute(&etcd, Ok(()), &answered, &now()));
    // The process does not answer, because its pod is being replaced.
    let kept = compute(&etcd, Ok(()), &Observed::default(), &now());
    assert_eq!(kept.copying, Some(progress));
    etcd.spec.backup.source_store = None;
    let opened = compute(&etcd, Ok(()), &Observed::default(), &now());
    assert_eq!(opened.copying, None);
}

/// The report of lost changes depends on this result, also after the pod is gone.
#[test]
fn what_a_copy_says_is_kept() {
    let mut etcd = etcd(MAIN);
    etcd.spec.backup.source_store = etcd.spec.backup.store.clone();
    let ended = |code: i32, message: &str| Observed {
        copies: vec![
            serde_json::from_value(
                json!({"metadata": {"name": "etcd-copy-x"}, "status": {"containerStatuses": [{
                    "name": "backup-restore", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"terminated": {"exitCode": code, "message": message}},
                }]}}),
            )
            .unwrap(),
        ],
        ..Observed::default()
    };
    let line = r#"{"finalSnapshot":false,"lastRevision":832,"saved":"2026-01-01T00:00:00Z"}"#;
    for other in [
        ended(1, line),
        ended(0, "copied"),
        ended(0, "{}"),
        Observed::default(),
    ] {
        assert_eq!(compute(&etcd, Ok(()), &other, &now()).copied, None);
    }
    let status = compute(&etcd, Ok(()), &ended(0, line), &now());
    let copied = status.copied.clone().unwrap();
    assert_eq!((copied.final_snapshot, copied.last_revision), (false, 832));
    // Fields that an older image does not report are unknown.
    assert_eq!((copied.complete, copied.sealed_revision), (false, None));
    let judged = line.replace(
        '}',
        r#","complete":true,"sealedRevision":832,"lostRevisions":null}"#,
    );
    let judged = compute(&etcd, Ok(()), &ended(0, &judged), &now()).copied.unwrap();
    assert_eq!((judged.complete, judged.sealed_revision), (true, Some(832)));
    // An API server refuses such a time.
    let absurd = line.replace("2026", "9000");
    let timeless = compute(&etcd, Ok(()), &ended(0, &absurd), &now()).copied.unwrap();
    assert_eq!((timeless.last_revision, timeless.saved), (832, None));
    etcd.status = Some(status);
    let later = compute(&etcd, Ok(()), &Observed::default(), &now());
    assert_eq!(later.copied, Some(copied));
    // The Etcd of the same name that runs afterwards has copied no backups.
    etcd.spec.backup.source_store = None;
    assert_eq!(compute(&etcd, Ok(()), &Observed::default(), &now()).copied, None);
}

#[test]
fn a_second_look_at_the_same_changes_nothing() {
    let mut etcd = etcd(MAIN);
    for observed in [
        Observed::default(),
        observed(&set(1), &[failing_pod("SnapshotMissing: nothing")]),
        observed(&set(1), &[pod(true, true, true)]),
    ] {
        let first = compute(&etcd, Ok(()), &observed, &now());
        etcd.status = Some(first.clone());
        assert_eq!(
            compute(&etcd, Ok(()), &observed, &time("2026-01-01T01:00:00Z")),
            first
        );
    }
}

#[test]
fn a_later_change_is_a_reconciliation() {
    let mut etcd = etcd(MAIN);
    let ready = observed(&set(1), &[pod(true, true, true)]);
    etcd.status = Some(compute(&etcd, Ok(()), &ready, &now()));
    assert!(line(&etcd, Ok(()), &ready).starts_with("true Create Succeeded"));
    etcd.metadata.generation = Some(2);
    assert!(line(&etcd, Ok(()), &ready).starts_with("true Reconcile Succeeded"));
}

#[test]
fn a_deletion_names_what_it_waits_for() {
    let status = deleting(&etcd(MAIN), None, Some("Pod etcd-main-0"), &now());
    let operation = status.last_operation.unwrap();
    assert_eq!(
        (operation.type_.as_str(), operation.state.as_str()),
        ("Delete", "Processing")
    );
    assert_eq!(
        operation.description,
        "Waiting until these are gone: Pod etcd-main-0."
    );
    let failed = deleting(
        &etcd(MAIN),
        Some(&Error::transient("no answer")),
        Some("Pod etcd-main-0"),
        &now(),
    );
    assert_eq!(failed.last_errors[0].code, "ERR_SYNC_ETCD");
}

/// The member is ready, as etcd answers reads: flows continue, and users learn why writes fail.
#[test]
fn an_etcd_that_refuses_writes_is_not_ready_for_clients() {
    let mut etcd = etcd(MAIN);
    let full = Observed {
        no_space: true,
        ..observed(&set(1), &[pod(true, true, true)])
    };
    let status = compute(&etcd, Ok(()), &full, &now());
    let ready = &status.conditions[0];
    assert_eq!(
        (ready.type_.as_str(), ready.status.as_str(), ready.reason.as_str()),
        ("Ready", "False", "NoSpace")
    );
    assert!(ready.message.contains("quota of 2Gi"), "{}", ready.message);
    assert_eq!(status.ready, Some(true));
    assert_eq!(status.last_errors[0].code, "ERR_RETRYABLE_CONFIGURATION_PROBLEM");
    assert_eq!(status.last_errors[0].description, ready.message);
    // The process beside etcd has tried to make room.
    let health = json!({"snapshotter": "Active", "space": {"relief": {"result": "NoRoom", "message": "The data fill etcd"}}});
    let tried = Observed {
        sidecar: Some(serde_json::from_value(health).unwrap()),
        ..full
    };
    let message = &compute(&etcd, Ok(()), &tried, &now()).conditions[0].message;
    assert!(message.contains("2Gi. The data fill etcd"), "{message}");
    etcd.status = Some(status);
    // The alarm is gone.
    let status = compute(
        &etcd,
        Ok(()),
        &observed(&set(1), &[pod(true, true, true)]),
        &now(),
    );
    assert_eq!(status.conditions[0].reason, "Quorate");
    assert!(status.last_errors.is_empty());
    // A stopped or unready etcd has different reasons.
    for pods in [vec![], vec![pod(false, true, true)]] {
        let observed = Observed {
            no_space: true,
            ..observed(&set(1), &pods)
        };
        let status = compute(&etcd, Ok(()), &observed, &now());
        assert_eq!(status.conditions[0].reason, "QuorumLost");
    }
}
