//! A host fills an object up to the bound of seeds before the next seed gets the object. The next seed has
//! the same bound, so that its first write would be refused.

use api::{
    constants::{
        BACKUP_ENTRY_BACKUPS_COPIED, BACKUP_ENTRY_FORCE_DELETION, BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH,
        CONFIRMATION_DELETION, OPERATION, OWNERSHIP_EPOCH, TIMESTAMP,
    },
    gardencore::{BackupEntry, Shoot},
};
use kube::Api;
use serde_json::{Value, json};

use crate::{
    garden::{Garden, NAMESPACE, allowed, operation, refused},
    reports::moving,
};

const LEAVING: (&str, &str) = ("Migrate", "Processing");

fn error(length: usize) -> Value {
    json!([{"description": "x".repeat(length)}])
}

pub fn hand_over() -> Value {
    json!({"seedName": "seed-b", "ownership": {"epoch": 2}, "formerSeeds": [{"name": "seed-a", "epoch": 1}],
        "lastOperation": operation("Migrate", "Succeeded")})
}

/// The fields of the first write of a restore.
fn first_write() -> Value {
    json!({
        "gardener": {"id": "gardenlet-0", "name": "gardenlet", "version": "1.0.0"}, "observedGeneration": 7,
        "lastOperation": operation("Restore", "Processing"), "retryCycleStartTime": "2026-01-01T00:00:00Z",
    })
}

pub async fn a_host_hands_a_shoot_over_with_room_for_the_next_seed(garden: &Garden) {
    moving(garden, "crammed", LEAVING).await;
    let [a, b] =
        [&garden.seed_a, &garden.seed_b].map(|client| Api::<Shoot>::namespaced(client.clone(), NAMESPACE));
    let words = "may not hand over Shoot crammed with a status of";
    for padding in [
        json!({"lastErrors": error(40_000)}),
        json!({"encryptedResources": vec!["a"; 3500]}),
    ] {
        let mut both = hand_over();
        for (field, value) in padding.as_object().unwrap() {
            both[field] = value.clone();
        }
        refused(garden.patch_status(&a, "crammed", both).await, words);
        allowed(garden.patch_status(&a, "crammed", padding).await);
        refused(garden.patch_status(&a, "crammed", hand_over()).await, words);
        let emptied = json!({"lastErrors": null, "encryptedResources": null});
        allowed(garden.patch_status(&a, "crammed", emptied).await);
    }
    let mut filled = hand_over();
    filled["lastErrors"] = error(31_000);
    allowed(garden.patch_status(&a, "crammed", filled).await);
    let mut first = first_write();
    first["clusterIdentity"] = json!("x".repeat(25_000));
    allowed(garden.patch_status(&b, "crammed", first).await);
}

/// The specification of a move may have 3000 fields and entries, and garden-controller-manager writes the
/// specification beside the status of the seed.
pub async fn the_approval_of_a_move_takes_no_room(garden: &Garden) {
    moving(garden, "wide", LEAVING).await;
    let shoots: Api<Shoot> = garden.admin(NAMESPACE);
    let spec = json!({"a": vec!["a"; 4000], "b": "x".repeat(40_000)});
    garden
        .status(&shoots, "wide", json!({"migration": {"spec": spec}}))
        .await;
    let a: Api<Shoot> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let padding = json!({"encryptedResources": vec!["a"; 2500]});
    allowed(garden.patch_status(&a, "wide", padding).await);
    allowed(garden.patch_status(&a, "wide", hand_over()).await);
}

pub async fn a_seed_leaves_its_entry_with_room_for_the_next_seed(garden: &Garden) {
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    let [a, b] = [&garden.seed_a, &garden.seed_b]
        .map(|client| Api::<BackupEntry>::namespaced(client.clone(), NAMESPACE));
    garden.entry("crammed", "seed-a", "bucket-a").await;
    let filled =
        |length: usize| json!({"seedName": "seed-a", "lastError": {"description": "x".repeat(length)}});
    allowed(garden.patch_status(&a, "crammed", filled(60_000)).await);
    let to_b = json!({"spec": {"seedName": "seed-b"}});
    garden.patch(&entries, "crammed", to_b).await.unwrap();
    let released = json!({"seedName": "seed-b"});
    refused(
        garden.patch_status(&a, "crammed", released.clone()).await,
        "may not hand over BackupEntry crammed with a status of",
    );
    allowed(garden.patch_status(&a, "crammed", filled(30_000)).await);
    allowed(garden.patch_status(&a, "crammed", released).await);
    let mut last = operation("Restore", "Processing");
    last["description"] = json!("x".repeat(25_000));
    allowed(
        garden
            .patch_status(&b, "crammed", json!({"lastOperation": last}))
            .await,
    );
}

/// Annotations stay after the hand-over, and a confirmation by a seed would let an administrator delete the
/// backups of a living shoot.
pub async fn a_seed_writes_the_annotations_of_its_work_to_its_entry(garden: &Garden) {
    let entries: Api<BackupEntry> = garden.admin(NAMESPACE);
    let a: Api<BackupEntry> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    garden.entry("annotated", "seed-a", "bucket-a").await;
    let with = |key: &str, value: Value| json!({"metadata": {"annotations": {key: value}}});
    garden
        .patch(&entries, "annotated", with("note", json!("of an administrator")))
        .await
        .unwrap();
    for (key, value) in [
        ("x", json!("y".repeat(60_000))),
        (CONFIRMATION_DELETION, json!("true")),
        (TIMESTAMP, json!("1".repeat(65))),
        ("note", json!("of a seed")),
        ("note", Value::Null),
    ] {
        let written = garden.patch(&a, "annotated", with(key, value)).await;
        let words = format!("may not change annotation {key} of BackupEntry annotated");
        refused(written, &words);
    }
    for key in [
        OPERATION,
        TIMESTAMP,
        OWNERSHIP_EPOCH,
        BACKUP_ENTRY_SOURCE_RELEASED_IN_EPOCH,
        BACKUP_ENTRY_BACKUPS_COPIED,
        BACKUP_ENTRY_FORCE_DELETION,
    ] {
        for value in [json!("2026-01-01T00:00:00.000000001Z"), Value::Null] {
            allowed(garden.patch(&a, "annotated", with(key, value)).await);
        }
    }
}
