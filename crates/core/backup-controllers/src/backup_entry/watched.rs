//! The watch of all BackupEntries of the garden, and the part of a BackupEntry of a different seed that the
//! store keeps. The entries of deleted shoots stay for the grace period, and a member of a project can create
//! many such entries.

use api::gardencore::{BackupEntry, BackupEntrySpec, BackupEntryStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api,
    runtime::{Controller, WatchStreamExt as _, watcher},
};
use runtime::{
    client::{Cluster as _, Garden},
    controller::runner,
};

use super::decision::responsible_seed;

/// The controller of all entries, which each change of an entry wakes. All entries are watched: a CRD can
/// select by a single field only, and a leaving entry still belongs to this seed although `spec.seedName`
/// names the destination.
pub(super) fn controller(garden: &Garden, seed: &str) -> Controller<BackupEntry> {
    let entries: Api<BackupEntry> = garden.all();
    let seed = seed.to_owned();
    let events = watcher(entries, runner::few_at_a_time())
        .default_backoff()
        .modify(move |entry| trim(entry, &seed));
    runner::controller_of_events(events, |_| None)
}

/// Removes the fields that the controller does not read from the store. Of an entry of a different seed, the
/// fields stay that show the responsible seed, and the fields that the runner writes.
fn trim(entry: &mut BackupEntry, seed: &str) {
    entry.metadata.managed_fields = None;
    if responsible_seed(entry) == Some(seed) {
        return;
    }
    let metadata = std::mem::take(&mut entry.metadata);
    entry.metadata = ObjectMeta {
        name: metadata.name,
        namespace: metadata.namespace,
        uid: metadata.uid,
        resource_version: metadata.resource_version,
        deletion_timestamp: metadata.deletion_timestamp,
        finalizers: metadata.finalizers,
        ..ObjectMeta::default()
    };
    entry.spec = BackupEntrySpec {
        seed_name: entry.spec.seed_name.take(),
        ..BackupEntrySpec::default()
    };
    entry.status = entry.status.take().map(|status| BackupEntryStatus {
        seed_name: status.seed_name,
        ..BackupEntryStatus::default()
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;
    use crate::backup_entry::decision::is_taken_from;

    /// An entry of a shoot, with the texts of a seed.
    fn entry(wanted: &str, has: &str) -> Value {
        let text = "x".repeat(1000);
        let last = json!({"type": "Create", "state": "Error", "progress": 1, "description": text,
            "lastUpdateTime": "2026-01-01T00:00:00Z"});
        json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "BackupEntry",
            "metadata": {"name": "e", "namespace": "garden-dev", "uid": "u", "resourceVersion": "7", "generation": 3,
                "labels": {"a": text}, "annotations": {"a": text}, "finalizers": ["gardener", "example.org/own"],
                "deletionTimestamp": "2026-01-01T00:00:00Z", "managedFields": [{"manager": text}],
                "ownerReferences": [{"apiVersion": "v1", "kind": "Shoot", "name": "web", "uid": "s"}]},
            "spec": {"bucketName": text, "seedName": wanted},
            "status": {"seedName": has, "lastOperation": last, "lastError": {"description": text}},
        })
    }

    fn trimmed(wanted: &str, has: &str) -> BackupEntry {
        let mut entry = serde_json::from_value(entry(wanted, has)).unwrap();
        trim(&mut entry, "a");
        entry
    }

    /// Otherwise a member of a project could end each gardenlet, by Shoots that are created and deleted.
    #[test]
    fn an_entry_of_a_different_seed_keeps_the_fields_that_show_the_seed() {
        for (wanted, has) in [("b", "b"), ("a", "b")] {
            let kept = trimmed(wanted, has);
            let expected: BackupEntry = serde_json::from_value(json!({
                "apiVersion": "core.gardener.cloud/v1beta1", "kind": "BackupEntry",
                "metadata": {"name": "e", "namespace": "garden-dev", "uid": "u", "resourceVersion": "7",
                    "finalizers": ["gardener", "example.org/own"], "deletionTimestamp": "2026-01-01T00:00:00Z"},
                "spec": {"bucketName": "", "seedName": wanted}, "status": {"seedName": has},
            }))
            .unwrap();
            assert_eq!(kept, expected);
            let mut living = kept;
            living.metadata.deletion_timestamp = None;
            assert!(is_taken_from(&living, "a"));
        }
    }

    /// The runner compares the generation. Until the release, the seed of the status is responsible.
    #[test]
    fn an_entry_of_this_seed_keeps_all_fields() {
        for (wanted, has) in [("a", "a"), ("b", "a"), ("a", "")] {
            let mut whole = entry(wanted, has);
            let kept = trimmed(wanted, has);
            whole["metadata"].as_object_mut().unwrap().remove("managedFields");
            let whole: BackupEntry = serde_json::from_value(whole).unwrap();
            assert_eq!(kept, whole);
        }
    }
}
