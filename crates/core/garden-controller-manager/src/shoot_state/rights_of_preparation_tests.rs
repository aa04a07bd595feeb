#![allow(clippy::unwrap_used)]

use api::gardencore::{Shoot, ShootSpec};
use serde_json::json;

use super::{content, host, seeds_of_shoot};

/// The grant is a right to report, and to the object of the grant: the host alone reads the state.
#[test]
fn a_seed_with_a_grant_to_prepare_reports_and_is_no_host() {
    let grant = json!({"uid": "u", "source": "a", "destination": "b", "epoch": 1,
        "expiry": "2026-01-01T00:00:00Z"});
    let mut shoot = Shoot::new("web", ShootSpec::default());
    shoot.metadata.uid = Some("u".into());
    shoot.status = serde_json::from_value(json!({"seedName": "a"})).unwrap();
    let before = content(&shoot);
    shoot.status =
        serde_json::from_value(json!({"seedName": "a", "liveMigration": {"preparation": grant}})).unwrap();
    assert_ne!(content(&shoot), before, "the seed may report");
    crate::shoots::trim(&mut shoot);
    assert_eq!(seeds_of_shoot(&shoot).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(host(&shoot), Some("a"));
    // A later grant names a different object.
    let granted = content(&shoot);
    let mut later = shoot.clone();
    let recorded = later.status.as_mut().unwrap().live_migration.as_mut().unwrap();
    recorded.preparation.as_mut().unwrap().expiry =
        serde_json::from_value(json!("2026-01-02T00:00:00Z")).unwrap();
    assert_ne!(content(&later), granted);
    // The epoch of the grant has ended.
    shoot.status.as_mut().unwrap().seed_name = Some("c".into());
    assert_eq!(seeds_of_shoot(&shoot).collect::<Vec<_>>(), ["c"]);
}
