//! The report of a copy, and the summary that gate E and etcd-druid rely on.

use crate::snapshot_name::Snapshot;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::HashSet;

/// What was done; printed as one line of JSON.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Whether the source's final snapshot was seen.
    pub final_snapshot: bool,
    /// Whether the wait for it ended without it.
    pub wait_timed_out: bool,
    /// Objects copied by this run.
    pub copied: Vec<String>,
    /// Objects that were there already, verified.
    pub skipped: Vec<String>,
    /// Bytes copied.
    pub bytes: u64,
    /// Revision that a restore of the copied chain reaches.
    pub last_revision: i64,
    /// When the newest snapshot of that chain was taken; nothing if its name does not say it.
    pub saved: Option<Timestamp>,
    /// Whether every change up to the end of the source's epoch is in the copied chain, of which this run has
    /// read and hashed every object.
    pub complete: bool,
    /// Revision at which the source's epoch was sealed, where that is known.
    pub sealed_revision: Option<i64>,
    /// Changes up to that revision that are in no snapshot, where their loss was accepted.
    pub lost_revisions: Option<i64>,
}

/// What of a [`Report`] others rely on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Whether the source's final snapshot was seen.
    pub final_snapshot: bool,
    /// Revision that a restore of the copied chain reaches.
    pub last_revision: i64,
    /// When the newest snapshot of that chain was taken; nothing if its name does not say it.
    pub saved: Option<Timestamp>,
    /// Whether every change up to the end of the source's epoch is in the copied chain, of which this run has
    /// read and hashed every object.
    pub complete: bool,
    /// Revision at which the source's epoch was sealed, where that is known.
    pub sealed_revision: Option<i64>,
    /// Changes up to that revision that are in no snapshot, where their loss was accepted.
    pub lost_revisions: Option<i64>,
}

impl Report {
    /// What of these is not known to be in the target.
    pub(super) fn missing(&self, objects: impl IntoIterator<Item = Snapshot>) -> Vec<Snapshot> {
        let there: HashSet<_> = self.copied.iter().chain(&self.skipped).collect();
        let missing = objects
            .into_iter()
            .filter(|one| !there.contains(&one.to_string()));
        missing.collect()
    }

    /// Short enough for what a container may say when it ends.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            final_snapshot: self.final_snapshot,
            last_revision: self.last_revision,
            saved: self.saved,
            complete: self.complete,
            sealed_revision: self.sealed_revision,
            lost_revisions: self.lost_revisions,
        }
    }
}
