#![allow(clippy::unwrap_used, clippy::needless_pass_by_value)]
use serde_json::{Value, json};

use super::*;

fn shoot(mut status: Value) -> Shoot {
    status["lastOperation"] = json!({"description": "d", "lastUpdateTime": "2025-12-01T00:00:00Z", "progress": 100,
        "state": "Succeeded", "type": "Reconcile"});
    serde_json::from_value(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
        "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
        "status": status,
    }))
    .unwrap()
}

fn entry(change: impl FnOnce(&mut Value)) -> BackupEntry {
    let mut entry = json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "BackupEntry",
        "metadata": {"name": "shoot--dev--web--u", "creationTimestamp": "2025-12-01T00:00:00Z", "deletionTimestamp": "2026-01-01T00:00:00Z",
            "annotations": {(OWNERSHIP_EPOCH): "4"}},
        "spec": {"bucketName": "bucket", "seedName": "seed-b"},
    });
    change(&mut entry);
    serde_json::from_value(entry).unwrap()
}

/// A garden that was restored from an old backup must not end a control plane that runs.
#[test]
fn only_a_later_epoch_of_a_different_seed_and_a_deletion_are_proof() {
    let own = |epoch: i64| shoot(json!({"seedName": "seed-a", "uid": "u", "ownership": {"epoch": epoch}}));
    let proof = prove(&entry(|_| ()), &own(3), "seed-a", "u").unwrap();
    assert_eq!((proof.epoch, proof.host.as_str()), (3, "seed-b"));
    assert_eq!(
        prove(&entry(|_| ()), &own(4), "seed-a", "u"),
        None,
        "the epoch of this seed is not older"
    );
    assert_eq!(
        prove(&entry(|_| ()), &own(3), "seed-a", "v"),
        None,
        "a different shoot"
    );
    let changes: [(&str, Value); 6] = [
        ("/metadata/creationTimestamp", Value::Null),
        ("/metadata/creationTimestamp", json!("2025-12-01T00:00:01Z")),
        ("/metadata/deletionTimestamp", Value::Null),
        ("/metadata/annotations", json!({})),
        ("/metadata/annotations", json!({(OWNERSHIP_EPOCH): "four"})),
        ("/spec/seedName", json!("seed-a")),
    ];
    for (field, value) in changes {
        let weaker = entry(|entry| *entry.pointer_mut(field).unwrap() = value.clone());
        assert_eq!(prove(&weaker, &own(3), "seed-a", "u"), None, "{field} {value}");
    }
    // A seed can write any epoch into the second annotation.
    let lying = entry(|entry| entry["metadata"]["annotations"][BACKUP_ENTRY_ASSIGNED_IN_EPOCH] = json!("3"));
    assert_eq!(prove(&lying, &own(3), "seed-a", "u"), None, "a false epoch");
    let held = entry(|entry| entry["status"] = json!({"seedName": "seed-a"}));
    assert_eq!(
        prove(&held, &own(3), "seed-a", "u"),
        None,
        "this seed has the entry"
    );
    let elsewhere = shoot(json!({"seedName": "seed-c", "uid": "u"}));
    assert_eq!(
        prove(&entry(|_| ()), &elsewhere, "seed-a", "u"),
        None,
        "no residency is known"
    );
}

#[test]
fn providers_lose_their_rights_with_a_departure() {
    let own = shoot(json!({"seedName": "seed-a", "uid": "u", "ownership": {"epoch": 3}}));
    let gone = departed(own, "seed-a", 3).unwrap();
    assert_eq!(role(&gone, "seed-a"), Role::Former { epoch: 3 });
    assert_eq!(gone.status.as_ref().map(ShootStatus::epoch), Some(4));
    assert_eq!(departed(gone, "seed-a", 3), None, "the departure is written once");
}
