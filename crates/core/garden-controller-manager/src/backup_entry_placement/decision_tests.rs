//! The destination of a BackupEntry in each state of the Shoot.

#![allow(clippy::unwrap_used)]

use api::gardencore::{BackupEntrySpec, SeedSpec, ShootSpec};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use serde_json::json;

use super::*;

fn shoot(host: &str, epoch: Option<i64>) -> Shoot {
    let mut shoot = Shoot::new("web", ShootSpec::default());
    let ownership = epoch.map(|epoch| json!({"epoch": epoch}));
    shoot.status = serde_json::from_value(json!({"seedName": host, "ownership": ownership})).unwrap();
    shoot
}

fn entry(seed: &str) -> BackupEntry {
    let mut entry = BackupEntry::new("e", BackupEntrySpec::default());
    entry.spec.seed_name = Some(seed.into());
    entry
}

#[test]
fn backups_follow_the_shoot_after_its_hand_over_and_not_before() {
    assert_eq!(
        destination(&shoot("b", Some(2)), &entry("a")),
        Some("b".to_owned())
    );
    assert_eq!(destination(&shoot("b", Some(2)), &entry("b")), None);
    assert_eq!(destination(&shoot("a", None), &entry("b")), None);
    assert_eq!(destination(&shoot("a", Some(1)), &entry("b")), None);
    assert_eq!(destination(&shoot("", Some(2)), &entry("b")), None);
    // An entry that is being deleted stays where it is.
    let mut going = entry("a");
    going.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    assert_eq!(destination(&shoot("b", Some(2)), &going), None);
}
fn on(entry: &BackupEntry, seed: &str) -> BackupEntry {
    let mut entry = entry.clone();
    entry.status = serde_json::from_value(json!({"seedName": seed})).unwrap();
    entry
}

/// R7-02, R17-20: a destination does not wait for a status that only a dead seed could write.
#[test]
fn a_seed_that_lost_its_shoot_without_its_help_need_not_let_go() {
    let taken = |epoch: i64, record: serde_json::Value| {
        let mut shoot = shoot("b", None);
        let approval = json!({"uid": "u", "from": "a", "to": "b", "epoch": epoch, "acceptedLoss": "SinceLastSnapshot",
            "expiry": "2026-01-01T00:00:00Z", "by": "Operator", "reason": "r"});
        let mut ownership = json!({"epoch": 2, "phase": "Claiming", "approval": approval});
        for (key, value) in record.as_object().into_iter().flatten() {
            ownership[key] = value.clone();
        }
        shoot.status = serde_json::from_value(json!({"seedName": "b", "ownership": ownership})).unwrap();
        shoot
    };
    let heir_of = |shoot: &Shoot| heir(shoot, &on(&entry("b"), "a"), |_| false);
    for phase in ["Claiming", "Opening", "Held"] {
        assert_eq!(heir_of(&taken(1, json!({"phase": phase}))), Some("b".to_owned()));
    }
    // The source has handed over the shoot since then, or this epoch has no approval.
    assert_eq!(heir_of(&taken(1, json!({"drained": true}))), None);
    assert_eq!(heir_of(&taken(1, json!({"epoch": 3}))), None);
    assert_eq!(heir_of(&taken(2, json!({}))), None);
    // The shoot was handed over, and handed on, before the seed in between had begun: its data are those
    // of two epochs ago.
    let of = |source: i64, drained: bool| {
        let record = json!({"epoch": 3, "approval": null, "drained": drained, "source": {"name": "z", "epoch": source}});
        heir_of(&taken(1, record))
    };
    assert_eq!(of(1, false), Some("b".to_owned()));
    assert_eq!((of(2, false), of(1, true)), (None, None));
    assert_eq!(heir_of(&shoot("b", Some(2))), None);
    let taken = taken(1, json!({}));
    let heir = |shoot: &Shoot, entry: &BackupEntry| heir(shoot, entry, |_| false);
    // The entry is assigned to that seed first, because the seed would otherwise hand it back; and the
    // status is written once.
    assert_eq!(heir(&taken, &on(&entry("a"), "a")), None);
    assert_eq!(heir(&taken, &on(&entry("b"), "b")), None);
    assert_eq!(heir(&taken, &on(&entry("b"), "")), None);
    assert_eq!(heir(&taken, &entry("b")), None);
}

/// The former seed dies between the hand-over and the release of the entry. Its etcd has ended with a proven
/// final snapshot.
#[test]
fn a_planned_move_does_not_wait_for_a_former_seed_that_is_lost() {
    let moved = |phase: Option<&str>, drained: bool| {
        let mut moved = shoot("b", None);
        let source = json!({"name": "a", "epoch": 1});
        let record = json!({"epoch": 2, "phase": phase, "drained": drained, "source": source});
        moved.status = serde_json::from_value(json!({"seedName": "b", "ownership": record})).unwrap();
        moved
    };
    let waiting = on(&entry("b"), "a");
    let heir_if = |moved: &Shoot, lost: &str| heir(moved, &waiting, |seed| seed == lost);
    let planned = moved(Some("Claiming"), true);
    assert_eq!(heir_if(&planned, "a").as_deref(), Some("b"));
    assert_eq!(heir_if(&planned, "b"), None, "the former seed lives");
    assert_eq!(former_host(&planned, &waiting), Some("a"));
    assert_eq!(former_host(&planned, &on(&entry("b"), "b")), None);
    // Without recorded phases a person decides.
    assert_eq!(heir_if(&moved(None, true), "a"), None);
    // The present seed doubts the hand-over, and fences the former seed.
    let doubted = moved(Some("Claiming"), false);
    assert_eq!(heir_if(&doubted, "a").as_deref(), Some("b"));
    assert_eq!(heir_if(&doubted, "b"), None);
    assert_eq!(heir(&planned, &on(&entry("a"), "a"), |_| true), None);
}

#[test]
fn a_seed_is_lost_if_the_seed_is_gone_or_silent() {
    let seed = |status: &str| {
        let mut seed = Seed::new("a", SeedSpec::default());
        let condition = json!({"type": "GardenletReady", "status": status, "reason": "R", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"});
        seed.status = serde_json::from_value(json!({"conditions": [condition]})).unwrap();
        seed
    };
    assert!(is_lost(None) && is_lost(Some(&seed("Unknown"))));
    assert!(!is_lost(Some(&seed("True"))) && !is_lost(Some(&seed("False"))));
    assert!(!is_lost(Some(&Seed::new("a", SeedSpec::default()))));
}

#[test]
fn a_takeover_releases_the_source_entry_that_the_lost_seed_was_deleting() {
    let taken = |epoch: i64, opened: i64| {
        let mut taken = shoot("c", None);
        let approval = json!({"uid": "u", "from": "b", "to": "c", "epoch": 2, "acceptedLoss": "SinceLastSnapshot",
            "expiry": "2026-01-01T00:00:00Z", "by": "Operator", "reason": "r"});
        let ownership = json!({"epoch": epoch, "phase": "Claiming", "approval": approval,
            "source": {"name": "b", "epoch": opened}});
        taken.status = serde_json::from_value(json!({"seedName": "c", "ownership": ownership})).unwrap();
        taken
    };
    let mut left = on(&entry("b"), "b");
    left.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    assert_eq!(abandoned_on(&taken(3, 2), &left), Some("b"));
    let mut never_begun = left.clone();
    never_begun.status = None;
    assert_eq!(abandoned_on(&taken(3, 2), &never_begun), Some("b"));
    // Seed b had opened no data. Without the release the next destination waits for ever for an entry that
    // names the bucket with the only data.
    assert_eq!(abandoned_on(&taken(3, 1), &left), Some("b"));
    // The move was planned: the seed ends the deletion. There is no deletion, or the host deletes.
    assert_eq!(abandoned_on(&taken(4, 3), &left), None);
    assert_eq!(abandoned_on(&taken(3, 2), &on(&entry("b"), "b")), None);
    let mut own = on(&left, "c");
    own.spec.seed_name = Some("c".into());
    assert_eq!(abandoned_on(&taken(3, 2), &own), None);
}
