//! The shared watch of all BackupEntries of all tenants, and the part of a BackupEntry that the store keeps:
//! the names of the seeds and of the bucket.

use api::gardencore::{BackupEntry, BackupEntrySpec, BackupEntryStatus};
use kube::ResourceExt;
use runtime::{
    client::{Cluster, Garden},
    controller::{SharedWatch, runner},
};

use crate::changes;

/// The watch of all BackupEntries, to which each controller that decides by names of seeds subscribes.
#[must_use]
pub fn watch(garden: &Garden) -> SharedWatch<BackupEntry> {
    SharedWatch::new(garden.all(), runner::few_at_a_time(), trim)
}

/// A hash of the fields that the store keeps.
pub(crate) fn content(entry: &BackupEntry) -> u64 {
    let of_status = entry.status.as_ref().and_then(|status| status.seed_name.as_ref());
    let spec = &entry.spec;
    changes::hash((entry.uid(), &spec.seed_name, &spec.bucket_name, of_status))
}

/// Removes the fields that no subscriber reads from the store.
fn trim(entry: &mut BackupEntry) {
    changes::trim_metadata(&mut entry.metadata);
    entry.spec = BackupEntrySpec {
        bucket_name: std::mem::take(&mut entry.spec.bucket_name),
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
    use serde_json::json;

    use super::*;

    /// The gardenlet writes the progress of an operation each second.
    #[test]
    fn the_names_of_seeds_and_bucket_are_kept_and_alone_change_the_content() {
        let entry = |description: &str, host: &str| -> BackupEntry {
            let last = json!({"type": "Create", "state": "Processing", "progress": 1, "description": description,
                "lastUpdateTime": "2026-01-01T00:00:00Z"});
            serde_json::from_value(json!({
                "metadata": {"name": "e", "namespace": "garden-dev", "uid": "u", "annotations": {"a": "b"}},
                "spec": {"bucketName": "bucket-a", "seedName": "a"},
                "status": {"seedName": host, "lastOperation": last},
            }))
            .unwrap()
        };
        let mut kept = entry("begins", "b");
        trim(&mut kept);
        assert_eq!(
            json!(kept),
            json!({
                "apiVersion": "core.gardener.cloud/v1beta1", "kind": "BackupEntry",
                "metadata": {"name": "e", "namespace": "garden-dev", "uid": "u"},
                "spec": {"bucketName": "bucket-a", "seedName": "a"}, "status": {"seedName": "b"},
            })
        );
        assert_eq!(content(&kept), content(&entry("goes on", "b")));
        assert_ne!(content(&kept), content(&entry("goes on", "a")));
    }
}
