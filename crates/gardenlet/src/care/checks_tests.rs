//! What each finding makes of a shoot's conditions.

#![allow(clippy::unwrap_used)]

use api::{
    druid::Etcd,
    gardencore::{ShootSpec, shoot::Worker},
    meta::{LastError, LastOperation, LastOperationType},
};
use serde_json::json;

use super::*;

fn deployment(name: &str, available: &str) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "status": {"conditions": [{"type": "Available", "status": available, "message": "no pod is ready"}]},
    }))
    .unwrap()
}

fn etcd(name: &str, ready: bool) -> Etcd {
    let mut etcd = Etcd::new(name, api::druid::EtcdSpec::default());
    etcd.status = Some(api::druid::EtcdStatus {
        ready: Some(ready),
        ..Default::default()
    });
    etcd
}

fn healthy() -> Observed {
    Observed {
        api_error: None,
        api_not_asked: false,
        nodes: Ok(Vec::new()),
        deployments: REQUIRED.map(|name| deployment(name, "True")).to_vec(),
        etcds: REQUIRED_ETCDS.map(|name| etcd(name, true)).to_vec(),
        extensions: vec![extension(LastOperationState::Succeeded, None)],
    }
}

fn extension(state: LastOperationState, error: Option<&str>) -> Extension {
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH);
    Extension {
        title: "Infrastructure web".into(),
        last_operation: Some(LastOperation {
            description: "d".into(),
            last_update_time: now,
            progress: 0,
            state,
            type_: LastOperationType::Reconcile,
        }),
        last_error: error.map(|description| LastError {
            description: description.into(),
            task_id: None,
            codes: vec![ErrorCode::ErrInfraUnauthorized],
            last_update_time: None,
        }),
    }
}

fn node(name: &str, ready: &str) -> Node {
    serde_json::from_value(json!({
        "metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }))
    .unwrap()
}

#[test]
fn a_healthy_control_plane_has_all_its_parts() {
    assert_eq!(control_plane(&healthy()).status, ConditionStatus::True);
    assert_eq!(api_server(&healthy()).status, ConditionStatus::True);
}

#[test]
fn the_first_ill_part_is_named() {
    let told = |change: fn(&mut Observed)| {
        let mut seen = healthy();
        change(&mut seen);
        let observation = control_plane(&seen);
        assert_eq!(observation.status, ConditionStatus::False);
        observation.message
    };
    assert_eq!(
        told(|s| s.deployments.truncate(2)),
        "Deployment kube-scheduler is missing."
    );
    assert!(told(|s| s.deployments[0] = deployment("kube-apiserver", "False")).contains("no pod is ready"));
    assert_eq!(
        told(|s| s.etcds.clear()),
        "Etcd etcd-main is missing (and 1 more)."
    );
    assert_eq!(
        told(|s| s.etcds[1] = etcd("etcd-events", false)),
        "Etcd etcd-events is not ready."
    );
    assert!(told(|s| s.extensions[0].last_operation = None).contains("was not acted on"));
    assert!(told(|s| s.extensions[0] = extension(LastOperationState::Failed, None)).contains("failed: d"));
}

#[test]
fn an_error_of_a_provider_brings_its_codes() {
    let mut seen = healthy();
    seen.extensions[0] = extension(LastOperationState::Error, Some("the key may not create networks"));
    let observation = control_plane(&seen);
    assert!(observation.message.contains("may not create networks"));
    assert_eq!(observation.codes, [ErrorCode::ErrInfraUnauthorized]);
    seen.extensions[0] = extension(LastOperationState::Processing, None);
    assert_eq!(control_plane(&seen).status, ConditionStatus::True);
}

#[test]
fn nodes_are_counted_and_asked() {
    let mut shoot = Shoot::new("web", ShootSpec::default());
    let mut seen = healthy();
    assert_eq!(nodes(&shoot, &seen).reason, "NoWorkers");
    shoot.spec.provider.workers = vec![Worker {
        minimum: 2,
        ..Worker::default()
    }];
    assert_eq!(nodes(&shoot, &seen).reason, "MissingNodes");
    seen.nodes = Ok(vec![node("n1", "True"), node("n2", "False")]);
    assert_eq!(nodes(&shoot, &seen).message, "Not ready: n2.");
    seen.nodes = Ok(vec![node("n1", "True"), node("n2", "True")]);
    assert_eq!(nodes(&shoot, &seen).status, ConditionStatus::True);
    seen.nodes = Err("the shoot's API is not available".into());
    assert_eq!(nodes(&shoot, &seen).status, ConditionStatus::Unknown);
}

#[test]
fn what_is_not_deployed_is_said_to_be_not_deployed() {
    assert_eq!(observability().reason, "NoObservabilityComponents");
    assert_eq!(system_components().reason, "NoSystemComponents");
}
