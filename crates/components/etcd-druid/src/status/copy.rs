//! The state of a backup copy, as seen from its Job (R17-27), and the result that the copy reports.

use api::druid::CopiedChain;
use jiff::{Timestamp, tz::TimeZone};
use k8s_openapi::{
    api::{batch::v1::Job, core::v1::Pod},
    apimachinery::pkg::apis::meta::v1::Time,
};
use sidecar_protocol::CopySummary;

use crate::{containers::statuses, names::BACKUP_CONTAINER};

/// Condition: the backups of the source are in the store. Only on an Etcd with `spec.backup.sourceStore`.
pub const BACKUPS_COPIED: &str = "BackupsCopied";

/// Whether the copy is done.
#[must_use]
pub fn is_complete(job: &Job) -> bool {
    has(job, "Complete")
}

/// The result that the copying container left after its success.
#[must_use]
pub fn read_chain(pods: &[Pod]) -> Option<CopiedChain> {
    let copied = pods
        .iter()
        .flat_map(statuses)
        .filter(|status| status.name == BACKUP_CONTAINER);
    let mut ended = copied.filter_map(|status| status.state.as_ref()?.terminated.as_ref());
    ended.find_map(|ended| {
        let line = ended.message.as_deref().filter(|_| ended.exit_code == 0)?;
        let copied: CopySummary = serde_json::from_str(line).ok()?;
        // A status with such a time would be refused, and the copy would never be seen to be done.
        let saved = copied.saved.filter(|saved| can_be_written(*saved));
        Some(CopiedChain {
            final_snapshot: copied.final_snapshot,
            last_revision: copied.last_revision,
            saved: saved.map(Time),
            complete: copied.complete,
            sealed_revision: copied.sealed_revision,
            lost_revisions: copied.lost_revisions,
            left_aside: copied.left_aside,
        })
    })
}

/// Whether an API server takes a time: from the year 0 on, and before the year 9000.
pub(super) fn can_be_written(time: Timestamp) -> bool {
    (0..9000).contains(&time.to_zoned(TimeZone::UTC).year())
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
