//! The effect of each finding on the conditions of a Seed.

#![allow(clippy::unwrap_used)]

use api::{
    gardencore::{BackupBucketSpec, BackupBucketStatus, SeedSpec, seed::SeedBackup},
    meta::{ErrorCode, LastError, LastOperation, LastOperationType},
};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DeploymentCondition, DeploymentSpec, DeploymentStatus};

use super::*;

fn epoch() -> Time {
    Time(Timestamp::UNIX_EPOCH)
}

fn druid() -> Component {
    Component {
        namespace: "garden".into(),
        name: "etcd-druid".into(),
    }
}

fn deployment(available: Option<&str>) -> Deployment {
    let condition = available.map(|status| DeploymentCondition {
        type_: "Available".into(),
        status: status.into(),
        message: Some("Deployment does not have minimum availability.".into()),
        ..DeploymentCondition::default()
    });
    let status = DeploymentStatus {
        conditions: condition.map(|c| vec![c]),
        ..DeploymentStatus::default()
    };
    Deployment {
        status: Some(status),
        ..Deployment::default()
    }
}

#[test]
fn silence_of_the_lease_is_not_told_by_the_silent() {
    assert_eq!(gardenlet(false, epoch()), None);
    assert_eq!(gardenlet(true, epoch()).unwrap().status, ConditionStatus::True);
}

#[test]
fn every_component_must_be_available() {
    let good = system_components(&[(druid(), Some(deployment(Some("True"))))], epoch());
    assert_eq!(good.status, ConditionStatus::True);
    for (deployment, words) in [
        (None, "garden/etcd-druid does not exist"),
        (Some(deployment(None)), "has not started"),
        (Some(deployment(Some("False"))), "minimum availability."),
    ] {
        let bad = system_components(&[(druid(), deployment)], epoch());
        assert_eq!(bad.status, ConditionStatus::False);
        assert!(bad.message.contains(words), "{}", bad.message);
    }
}

#[test]
fn a_component_that_was_scaled_away_is_not_healthy_although_it_is_available() {
    let scaled = |replicas| {
        let mut deployment = deployment(Some("True"));
        deployment.spec = Some(DeploymentSpec {
            replicas: Some(replicas),
            ..DeploymentSpec::default()
        });
        system_components(&[(druid(), Some(deployment))], epoch())
    };
    assert_eq!(scaled(1).status, ConditionStatus::True);
    assert_eq!(scaled(0).status, ConditionStatus::False);
    assert_eq!(scaled(0).message, "Deployment garden/etcd-druid is scaled to 0.");
}

#[test]
fn a_seed_of_which_nothing_was_looked_at_is_not_called_healthy() {
    let unknown = system_components(&[], epoch());
    assert_eq!(unknown.status, ConditionStatus::Unknown);
    assert!(
        unknown.message.contains("--system-component"),
        "{}",
        unknown.message
    );
}

#[test]
fn a_bucket_is_ready_when_its_last_operation_succeeded() {
    let mut seed = Seed::new("a", SeedSpec::default());
    assert_eq!(backup_bucket(&seed, None, epoch()), None);
    seed.spec.backup = Some(SeedBackup::default());
    assert_eq!(
        backup_bucket(&seed, None, epoch()).unwrap().status,
        ConditionStatus::Progressing
    );
    let mut bucket = BackupBucket::new("b", BackupBucketSpec::default());
    bucket.status = Some(BackupBucketStatus {
        last_operation: Some(LastOperation {
            description: String::new(),
            last_update_time: epoch(),
            progress: 100,
            state: LastOperationState::Succeeded,
            type_: LastOperationType::Create,
        }),
        ..BackupBucketStatus::default()
    });
    assert_eq!(
        backup_bucket(&seed, Some(&bucket), epoch()).unwrap().status,
        ConditionStatus::True
    );
    bucket.status.as_mut().unwrap().last_error = Some(LastError {
        description: "the key is wrong".into(),
        task_id: None,
        codes: vec![ErrorCode::ErrInfraUnauthenticated],
        last_update_time: None,
    });
    let failing = backup_bucket(&seed, Some(&bucket), epoch()).unwrap();
    assert_eq!(
        (failing.status, failing.codes),
        (ConditionStatus::False, vec![ErrorCode::ErrInfraUnauthenticated])
    );
}

#[test]
fn the_emergency_stop_shows_in_the_seed_while_it_is_on() {
    let mut seed = Seed::new("seed-a", SeedSpec::default());
    assert_eq!(emergency_stop(&seed, epoch()), None);
    let annotations = seed.annotations_mut();
    annotations.insert(EMERGENCY_STOP.to_owned(), "true".to_owned());
    let stopped = emergency_stop(&seed, epoch()).unwrap();
    assert_eq!(stopped.status, ConditionStatus::True);
    assert!(stopped.message.contains(EMERGENCY_STOP), "{}", stopped.message);
    seed.annotations_mut()
        .insert(EMERGENCY_STOP.to_owned(), "false".to_owned());
    assert_eq!(emergency_stop(&seed, epoch()), None);
}

#[test]
fn an_edge_without_an_address_is_reported() {
    let with = |status: serde_json::Value| -> Service {
        serde_json::from_value(serde_json::json!({"status": status})).unwrap()
    };
    let ingress = |entry: serde_json::Value| serde_json::json!({"loadBalancer": {"ingress": [entry]}});
    for (service, status, words) in [
        (None, ConditionStatus::False, "does not exist"),
        (
            Some(with(serde_json::json!({"loadBalancer": {}}))),
            ConditionStatus::False,
            "has no address",
        ),
        (
            Some(with(ingress(serde_json::json!({"ip": "192.0.2.10"})))),
            ConditionStatus::True,
            "192.0.2.10",
        ),
        (
            Some(with(ingress(
                serde_json::json!({"hostname": "edge.example.test"}),
            ))),
            ConditionStatus::True,
            "edge.example.test",
        ),
    ] {
        let condition = edge_address("garden-exposure/ingress", service.as_ref(), epoch());
        assert_eq!(condition.type_, "EdgeAddressReady");
        assert_eq!(condition.status, status, "{}", condition.message);
        assert!(
            condition.message.contains("garden-exposure/ingress") && condition.message.contains(words),
            "{}",
            condition.message
        );
    }
}
