//! How a copy of backups stands, as seen from its Job (R17-27).

use k8s_openapi::api::batch::v1::Job;

/// Condition: the backups of the source are in the store. Only on an Etcd with `spec.backup.sourceStore`.
pub const BACKUPS_COPIED: &str = "BackupsCopied";

/// Whether the copy is done.
#[must_use]
pub fn is_complete(job: &Job) -> bool {
    has(job, "Complete")
}

fn has(job: &Job, type_: &str) -> bool {
    let conditions = job
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_deref())
        .unwrap_or_default();
    conditions
        .iter()
        .any(|condition| condition.type_ == type_ && condition.status == "True")
}
