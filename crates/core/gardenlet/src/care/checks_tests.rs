//! The effect of each finding on the conditions of a shoot.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use api::{
    druid::Etcd,
    gardencore::{ShootSpec, shoot::Worker},
    meta::{ErrorCode, LastError, LastOperation, LastOperationType},
};
use serde_json::json;

use super::{super::inputs::NodeReadiness, *};

/// A Deployment as its controller reports the status: the only pod may be unavailable, so `Available` is
/// always `True`.
fn deployment(name: &str, available: i32) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": name, "generation": 2},
        "spec": {
            "replicas": 1, "selector": {}, "template": {},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        },
        "status": {
            "observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": available,
            "conditions": [{"type": "Available", "status": "True", "message": "Deployment has minimum availability."}],
        },
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

/// An Etcd that keeps clients away on purpose (R17-40, R17-47).
fn fenced(name: &str) -> Etcd {
    let mut etcd = etcd(name, false);
    etcd.status.as_mut().unwrap().conditions = serde_json::from_value(json!([{
        "type": "Ready", "status": "False", "reason": "Fenced",
        "message": "etcd is not served until it is confirmed that the shoot is this seed's: no server answers.",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z",
    }]))
    .unwrap();
    etcd
}

/// Alarm NOSPACE: the member stays ready, and refuses writes.
fn full(name: &str) -> Etcd {
    let mut etcd = etcd(name, true);
    etcd.status.as_mut().unwrap().conditions = serde_json::from_value(json!([{
        "type": "Ready", "status": "False", "reason": "NoSpace", "message": "etcd refuses writes: alarm NOSPACE is raised.",
        "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z",
    }]))
    .unwrap();
    etcd
}

fn healthy() -> CareInputs {
    CareInputs {
        api_error: None,
        api_not_asked: false,
        nodes: Ok(Vec::new()),
        webhooks: None,
        deployments: REQUIRED.map(|name| deployment(name, 1)).to_vec(),
        pod_reports: BTreeMap::new(),
        etcds: REQUIRED_ETCDS.map(|name| etcd(name, true)).to_vec(),
        extensions: vec![extension(LastOperationState::Succeeded, None)],
        resources: Vec::new(),
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
        conditions: Vec::new(),
    }
}

fn node(name: &str, ready: &str) -> NodeReadiness {
    let node = json!({
        "metadata": {"name": name}, "status": {"conditions": [{"type": "Ready", "status": ready}]},
    });
    NodeReadiness::from_node(&serde_json::from_value(node).unwrap())
}

#[test]
fn a_healthy_control_plane_has_all_its_parts() {
    assert_eq!(control_plane(&healthy()).status, ConditionStatus::True);
    assert_eq!(api_server(&healthy()).status, ConditionStatus::True);
}

#[test]
fn an_etcd_that_refuses_writes_is_reported_before_the_parts_that_fail_for_it() {
    let mut inputs = healthy();
    inputs.deployments = vec![deployment("kube-apiserver", 0)];
    inputs.etcds = vec![etcd("etcd-events", true), full("etcd-main")];
    let observation = control_plane(&inputs);
    assert_eq!(
        (observation.status, observation.reason),
        (ConditionStatus::False, "EtcdNoSpace")
    );
    assert_eq!(
        observation.message,
        "Etcd etcd-main: etcd refuses writes: alarm NOSPACE is raised (and 3 more)."
    );
    // Without Events the shoot is served, and a move is not concerned.
    inputs.etcds = vec![full("etcd-events"), etcd("etcd-main", true)];
    let observation = control_plane(&inputs);
    assert_eq!(observation.reason, "ControlPlaneUnhealthy");
    assert!(
        observation
            .message
            .starts_with("Etcd etcd-events: etcd refuses writes")
    );
}

#[test]
fn the_first_ill_part_is_named() {
    let told = |change: fn(&mut CareInputs)| {
        let mut inputs = healthy();
        change(&mut inputs);
        let observation = control_plane(&inputs);
        assert_eq!(observation.status, ConditionStatus::False);
        observation.message
    };
    assert_eq!(
        told(|s| s.deployments.truncate(2)),
        "Deployment kube-scheduler is missing."
    );
    assert_eq!(
        told(|s| s.deployments[0] = deployment("kube-apiserver", 0)),
        "Deployment kube-apiserver: 0 of 1 pods are available."
    );
    assert_eq!(
        told(|s| s.etcds.clear()),
        "Etcd etcd-main is missing (and 1 more)."
    );
    assert_eq!(
        told(|s| s.etcds[1] = etcd("etcd-events", false)),
        "Etcd etcd-events is not ready."
    );
    assert_eq!(
        told(|s| s.etcds[0] = fenced("etcd-main")),
        "Etcd etcd-main is not ready: etcd is not served until it is confirmed that the shoot is this seed's: no server answers."
    );
    assert!(told(|s| s.extensions[0].last_operation = None).contains("was not acted on"));
    assert!(told(|s| s.extensions[0] = extension(LastOperationState::Failed, None)).contains("failed: d"));
}

/// Also for a Deployment of a provider.
#[test]
fn an_only_pod_that_ends_again_and_again_is_told() {
    for name in [
        "kube-controller-manager",
        "kube-scheduler",
        "cloud-controller-manager",
    ] {
        let mut inputs = healthy();
        inputs.deployments.retain(|d| d.name_any() != name);
        inputs.deployments.push(deployment(name, 0));
        inputs
            .pod_reports
            .insert(name.into(), "CrashLoopBackOff: unknown flag: --x".into());
        let observation = control_plane(&inputs);
        assert_eq!(observation.status, ConditionStatus::False);
        assert_eq!(
            observation.message,
            format!("Deployment {name}: 0 of 1 pods are available (CrashLoopBackOff: unknown flag: --x).")
        );
    }
}

#[test]
fn a_deployment_is_well_with_as_many_pods_as_it_wants() {
    let lacks = |change: fn(&mut Deployment)| {
        let mut changed = deployment("kube-scheduler", 1);
        change(&mut changed);
        super::lacks(&changed).unwrap_or_default()
    };
    assert_eq!(lacks(|_| ()), "");
    assert_eq!(lacks(|d| d.status.as_mut().unwrap().replicas = Some(2)), "");
    assert_eq!(
        lacks(|d| d.spec.as_mut().unwrap().replicas = Some(2)),
        "1 of 2 pods are available"
    );
    assert_eq!(
        lacks(|d| {
            d.spec.as_mut().unwrap().replicas = Some(0);
            d.status.as_mut().unwrap().available_replicas = None;
        }),
        "",
        "it sleeps"
    );
    for unseen in [
        lacks(|d| d.metadata.generation = Some(3)),
        lacks(|d| d.status = None),
    ] {
        assert_eq!(unseen, "its last change has not been seen yet");
    }
}

/// A hibernated shoot is not checked, and a move explains the report as `Moving`.
#[test]
fn a_required_deployment_that_is_scaled_to_zero_is_reported() {
    let scaled = |name: &str| {
        let mut inputs = healthy();
        if !REQUIRED.contains(&name) {
            inputs.deployments.push(deployment(name, 1));
        }
        let deployment = inputs
            .deployments
            .iter_mut()
            .find(|d| d.name_any() == name)
            .unwrap();
        deployment.spec.as_mut().unwrap().replicas = Some(0);
        deployment.status.as_mut().unwrap().available_replicas = None;
        control_plane(&inputs)
    };
    for name in REQUIRED {
        let observation = scaled(name);
        assert_eq!(observation.status, ConditionStatus::False, "{name}");
        let message = format!("Deployment {name}: scaled to 0 replicas.");
        assert_eq!(observation.message, message);
    }
    let of_provider = scaled("cloud-controller-manager");
    assert_eq!(
        of_provider.status,
        ConditionStatus::True,
        "{}",
        of_provider.message
    );
}

#[test]
fn an_error_of_a_provider_brings_its_codes() {
    let mut inputs = healthy();
    inputs.extensions[0] = extension(LastOperationState::Error, Some("the key may not create networks"));
    let observation = control_plane(&inputs);
    assert!(observation.message.contains("may not create networks"));
    assert_eq!(observation.codes, [ErrorCode::ErrInfraUnauthorized]);
    inputs.extensions[0] = extension(LastOperationState::Processing, None);
    assert_eq!(control_plane(&inputs).status, ConditionStatus::True);
}

#[test]
fn nodes_are_counted_and_asked() {
    let mut shoot = Shoot::new("web", ShootSpec::default());
    let mut inputs = healthy();
    assert_eq!(nodes(&shoot, &inputs).reason, "NoWorkers");
    shoot.spec.provider.workers = vec![Worker {
        minimum: 2,
        ..Worker::default()
    }];
    assert_eq!(nodes(&shoot, &inputs).reason, "MissingNodes");
    inputs.nodes = Ok(vec![node("n1", "True"), node("n2", "False")]);
    assert_eq!(nodes(&shoot, &inputs).message, "Not ready: n2.");
    // Users of the shoot may create any number of nodes: the message lists only some names.
    let many = (0..9).map(|number| node(&format!("n{number}"), "False"));
    inputs.nodes = Ok(many.collect());
    let told = nodes(&shoot, &inputs).message;
    assert_eq!(told, "Not ready: n0, n1, n2, n3, n4 and 4 more.");
    inputs.nodes = Ok(vec![node("n1", "True"), node("n2", "True")]);
    assert_eq!(nodes(&shoot, &inputs).status, ConditionStatus::True);
    inputs.nodes = Err("the shoot's API is not available".into());
    assert_eq!(nodes(&shoot, &inputs).status, ConditionStatus::Unknown);
}

#[test]
fn what_is_not_deployed_is_said_to_be_not_deployed() {
    assert_eq!(observability().reason, "NoObservabilityComponents");
}

/// A part that stops on purpose is healthy; a shoot that wakes is checked.
#[test]
fn a_shoot_that_sleeps_is_well_and_one_that_wakes_is_looked_at() {
    let told = |enabled: bool, hibernated: bool| {
        let mut shoot = Shoot::default();
        shoot.spec.hibernation = serde_json::from_value(json!({"enabled": enabled})).unwrap();
        shoot.status = serde_json::from_value(json!({"hibernated": hibernated})).unwrap();
        of_sleep(&shoot).map(|told| (told.status, told.message))
    };
    let (status, message) = told(true, true).unwrap();
    assert_eq!(status, ConditionStatus::True);
    assert_eq!(message, "Shoot cluster has been hibernated.");
    assert_eq!(told(true, false).unwrap().0, ConditionStatus::Progressing);
    assert_eq!(told(false, true), None);
    assert_eq!(told(false, false), None);
    assert_eq!(of_sleep(&Shoot::default()), None);
}
