//! The seeds with rights to the objects of a Shoot, a BackupEntry and a namespace.

#![allow(clippy::unwrap_used)]

use api::gardencore::{BackupEntrySpec, ShootSpec};
use serde_json::{Value, json};

use super::*;

#[test]
fn each_seed_with_a_relation_to_an_object_reports_about_it() {
    let mut shoot = Shoot::new("web", ShootSpec::default());
    assert_eq!(seeds_of_shoot(&shoot).count(), 0);
    let before = content(&shoot);
    shoot.spec.seed_name = Some("b".into());
    assert_ne!(content(&shoot), before, "a new seed may report");
    shoot.status = serde_json::from_value(
        json!({"seedName": "a", "formerSeeds": [{"name": "c", "epoch": 1}],
        "technicalID": "t"}),
    )
    .unwrap();
    crate::shoots::trim(&mut shoot);
    let seeds: Vec<_> = seeds_of_shoot(&shoot).collect();
    assert_eq!(seeds, ["a", "b", "c"]);
    shoot.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!((host(&shoot), seeds_of_shoot(&shoot).count()), (None, 1));

    let spec = BackupEntrySpec {
        bucket_name: "x".into(),
        seed_name: Some("b".into()),
        shoot_ref: None,
    };
    let mut entry = BackupEntry::new("web", spec);
    entry.status = serde_json::from_value(json!({"seedName": "a"})).unwrap();
    assert_eq!(seeds_of_entry(&entry).collect::<Vec<_>>(), ["b", "a"]);
}

fn namespace(name: &str, labels: &Value) -> NamespaceMeta {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": labels}})).unwrap()
}

#[test]
fn a_namespace_is_of_a_project_by_the_label() {
    assert!(is_of_project(&namespace(
        "garden-dev",
        &json!({(PROJECT_NAME): "dev"})
    )));
    assert!(!is_of_project(&namespace(
        "garden-dev",
        &json!({(ROLE): "project"})
    )));
}

#[test]
fn a_namespace_is_of_a_seed_by_name_and_label() {
    let role = json!({(ROLE): "seed"});
    assert_eq!(own_seed(&namespace("seed-a", &role)), Some("a"));
    assert_eq!(own_seed(&namespace("seed-a", &json!({}))), None);
    assert_eq!(own_seed(&namespace("garden", &role)), None);
    let of_project = json!({(ROLE): "seed", (PROJECT_NAME): "dev"});
    assert_eq!(own_seed(&namespace("seed-a", &of_project)), None);
    let mut ending = namespace("seed-a", &role);
    ending.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    assert_eq!(own_seed(&ending), None);
}
