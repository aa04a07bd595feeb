//! The BackupEntry of a preparation: the destination writes the status alone, and further seeds write
//! nothing.

use api::{
    constants::{
        BACKUP_ENTRY_ASSIGNED_IN_EPOCH, BACKUP_ENTRY_BACKUPS_COPIED, BACKUP_ENTRY_FORCE_DELETION, OPERATION,
        OWNERSHIP_EPOCH, finalizer::GARDENER,
    },
    gardencore::BackupEntry,
};
use kube::{Api, api::DeleteParams};
use serde_json::json;

use crate::garden::{Garden, NAMESPACE, allowed, refused};

const NAME: &str = "prepared-1-32472144000-shoot--dev--chained--u";
/// The begin of each refusal for the destination.
const MAY_NOT: &str = "the gardenlet of seed \"seed-b\" may not";

/// A finalizer would keep the entry after the end of the grant, and an annotation would begin an operation.
pub async fn a_destination_writes_the_status_of_its_entry_alone(garden: &Garden) {
    garden.entry(NAME, "seed-b", "bucket-b").await;
    let a: Api<BackupEntry> = Api::namespaced(garden.seed_a.clone(), NAMESPACE);
    let b: Api<BackupEntry> = Api::namespaced(garden.seed_b.clone(), NAMESPACE);
    let status = json!({"seedName": "seed-b", "lastError": {"description": "d"}});
    allowed(garden.patch_status(&b, NAME, status).await);
    refused(
        garden.patch_status(&b, NAME, json!({"seedName": "seed-a"})).await,
        MAY_NOT,
    );
    for metadata in [
        json!({"finalizers": [GARDENER]}),
        json!({"finalizers": ["x/y"]}),
        json!({"labels": {"x": "y"}}),
        json!({"annotations": {(OPERATION): "restore"}}),
        json!({"annotations": {(OWNERSHIP_EPOCH): "999"}}),
        json!({"annotations": {(BACKUP_ENTRY_ASSIGNED_IN_EPOCH): "999"}}),
        json!({"annotations": {(BACKUP_ENTRY_BACKUPS_COPIED): "true"}}),
        json!({"annotations": {(BACKUP_ENTRY_FORCE_DELETION): "true"}}),
    ] {
        let body = json!({"metadata": metadata});
        refused(garden.patch(&b, NAME, body).await, MAY_NOT);
    }
    // Two policies refuse, in no order.
    for spec in [json!({"bucketName": "bucket-a"}), json!({"seedName": "seed-c"})] {
        refused(
            garden.patch(&b, NAME, json!({"spec": spec})).await,
            &format!("may not change the spec of BackupEntry {NAME}"),
        );
    }
    refused(b.delete(NAME, &DeleteParams::default()).await.map(drop), MAY_NOT);
    // The host of the shoot has no part in the entry.
    let foreign = "the gardenlet of seed \"seed-a\" may not write BackupEntry";
    let status = json!({"lastError": {"description": "planted"}});
    refused(garden.patch_status(&a, NAME, status).await, foreign);
    let finalizer = json!({"metadata": {"finalizers": [GARDENER]}});
    refused(garden.patch(&a, NAME, finalizer).await, foreign);
    refused(a.delete(NAME, &DeleteParams::default()).await.map(drop), foreign);
    // garden-controller-manager deletes the entry at the end of the grant.
    let manager: Api<BackupEntry> = Api::namespaced(garden.manager.clone(), NAMESPACE);
    allowed(manager.delete(NAME, &DeleteParams::default()).await.map(drop));
}
