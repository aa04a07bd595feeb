#![allow(clippy::unwrap_used)]

use api::gardencore::{Shoot, ShootSpec};
use serde_json::json;

use super::{content, host, seeds_of_shoot};

/// The grant is a right to report, and to nothing else: the host alone reads the state.
#[test]
fn a_seed_with_a_grant_to_prepare_reports_and_reads_nothing() {
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
    // The epoch of the grant has ended.
    shoot.status.as_mut().unwrap().seed_name = Some("c".into());
    assert_eq!(seeds_of_shoot(&shoot).collect::<Vec<_>>(), ["c"]);
}
