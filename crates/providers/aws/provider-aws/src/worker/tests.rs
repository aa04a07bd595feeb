#![allow(clippy::unwrap_used)]
use api::meta::ErrorCode;
use cloud_aws::{infrastructure::InfrastructureStatus, zones::Zone};
use serde_json::{Value, json};

use super::*;

fn pool(more: Value) -> WorkerPool {
    let mut pool = json!({
        "name": "a", "minimum": 1, "maximum": 2, "maxSurge": 1, "maxUnavailable": 0, "machineType": "m5.large",
        "machineImage": {"name": "gardenlinux", "version": "1.2.3"}, "zones": ["eu-west-1a"],
        "userDataSecretRef": {"name": "first", "key": "cloud_config"},
    });
    if let (Some(pool), Value::Object(more)) = (pool.as_object_mut(), more) {
        pool.extend(more);
    }
    serde_json::from_value(pool).unwrap()
}

#[test]
fn an_image_is_of_a_region_and_an_architecture() {
    let regions = json!([
        {"name": "eu-west-1", "ami": "ami-1"},
        {"name": "eu-west-1", "ami": "ami-2", "architecture": "arm64"},
        {"name": "eu-central-1", "ami": "ami-3", "architecture": "amd64"},
    ]);
    let images = json!([{"name": "gardenlinux", "versions": [{"version": "1.2.3", "regions": regions}]}]);
    let profile = RawExtension(json!({"spec": {"providerConfig": {"machineImages": images}}}));
    let of = |pool: &WorkerPool, region: &str| images::image_of(Some(&profile), pool, region);
    assert_eq!(of(&pool(json!({})), "eu-west-1").unwrap(), "ami-1");
    assert_eq!(
        of(&pool(json!({"architecture": "arm64"})), "eu-west-1").unwrap(),
        "ami-2"
    );
    assert_eq!(of(&pool(json!({})), "eu-central-1").unwrap(), "ami-3");
    for (pool, region) in [
        (pool(json!({"architecture": "arm64"})), "eu-central-1"),
        (pool(json!({})), "us-east-1"),
        (
            pool(json!({"machineImage": {"name": "gardenlinux", "version": "1.2.4"}})),
            "eu-west-1",
        ),
    ] {
        let error = of(&pool, region).unwrap_err();
        assert_eq!(error.codes(), [ErrorCode::ErrConfigurationProblem]);
        assert!(error.to_string().contains(region), "{error}");
    }
    assert!(images::image_of(None, &pool(json!({})), "eu-west-1").is_err());
    let wrong = RawExtension(json!({"spec": {"providerConfig": {"machineImages": 7}}}));
    let error = images::image_of(Some(&wrong), &pool(json!({})), "eu-west-1").unwrap_err();
    assert!(error.to_string().contains("cannot be understood"), "{error}");
}

#[test]
fn a_node_has_the_id_of_its_zone_as_a_label() {
    let infrastructure = InfrastructureStatus {
        zones: vec![Zone {
            name: "eu-west-1a".into(),
            id: "euw1-az3".into(),
        }],
        ..InfrastructureStatus::default()
    };
    let label = zone_id_label(&infrastructure, "eu-west-1a").unwrap();
    assert_eq!(
        label,
        ("topology.k8s.aws/zone-id".to_owned(), "euw1-az3".to_owned())
    );
    assert_eq!(zone_id_label(&infrastructure, "eu-west-1b"), None);
}

#[test]
fn a_zone_has_a_subnet_or_is_told() {
    let infrastructure: InfrastructureStatus =
        serde_json::from_value(json!({"vpc": {"id": "vpc-1", "subnets": [
            {"id": "subnet-1", "purpose": "public", "zone": "eu-west-1a"},
            {"id": "subnet-2", "purpose": "nodes", "zone": "eu-west-1a"},
        ]}}))
        .unwrap();
    let infrastructure = InfrastructureStatus {
        zones: vec![Zone {
            name: "eu-west-1a".into(),
            id: "euw1-az1".into(),
        }],
        ..infrastructure
    };
    let pool = pool(json!({}));
    assert_eq!(
        subnet_of(&infrastructure, &pool, "eu-west-1a").unwrap(),
        "subnet-2"
    );
    for zone in ["eu-west-1b", ""] {
        let error = subnet_of(&infrastructure, &pool, zone).unwrap_err();
        assert_eq!(error.codes(), [ErrorCode::ErrConfigurationProblem]);
        assert!(error.to_string().contains("in eu-west-1a only"), "{error}");
    }
}

#[test]
fn a_disk_is_encrypted_unless_it_is_said() {
    let volume = |more: Value| root_volume(&pool(json!({"volume": more})));
    assert_eq!(root_volume(&pool(json!({}))).unwrap(), None);
    let usual = volume(json!({"size": "50Gi", "type": "gp3"})).unwrap().unwrap();
    assert_eq!(
        (usual.size_gib, usual.type_.as_deref(), usual.encrypted),
        (50, Some("gp3"), true)
    );
    let plain = volume(json!({"size": "20Gi", "encrypted": false}))
        .unwrap()
        .unwrap();
    assert!(!plain.encrypted);
    let error = volume(json!({"size": "0Gi"})).unwrap_err();
    assert!(error.to_string().contains("\"0Gi\""), "{error}");
}

#[test]
fn what_has_no_effect_is_refused_by_its_name() {
    assert_eq!(
        refuse_what_is_not_there_yet(&pool(json!({"providerConfig": null}))),
        Ok(())
    );
    for (field, value) in [
        ("dataVolumes", json!([{"name": "d", "size": "1Gi"}])),
        ("providerConfig", json!({"kind": "WorkerConfig"})),
    ] {
        let error = refuse_what_is_not_there_yet(&pool(json!({field: value}))).unwrap_err();
        assert!(error.to_string().starts_with(field), "{error}");
    }
}
