//! The report of a copy, and the summary that the etcd condition and etcd-druid rely on.

use crate::snapshot_name::Snapshot;
use jiff::Timestamp;
use serde::Serialize;
use sidecar_protocol::CopySummary;
use std::collections::HashSet;

/// Names in a summary: with [`LONGEST_NAME`] less than the 4096 bytes that a kubelet takes, also in
/// characters of four bytes.
const MOST_NAMES: usize = 5;
/// Characters of a name in a summary. A snapshot's own name is shorter.
const LONGEST_NAME: usize = 128;

/// The result of a copy; printed as a line of JSON.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Whether the source's final snapshot was seen.
    pub final_snapshot: bool,
    /// Whether the wait for the final snapshot timed out.
    pub wait_timed_out: bool,
    /// Objects copied by this run.
    pub copied: Vec<String>,
    /// Objects that were already in the target, verified.
    pub skipped: Vec<String>,
    /// Bytes copied.
    pub bytes: u64,
    /// Revision that a restore of the copied chain reaches.
    pub last_revision: i64,
    /// Time at which the newest snapshot of that chain was taken; absent if its name holds no valid time.
    pub saved: Option<Timestamp>,
    /// Whether every change up to the end of the source's epoch is in the copied chain. This run has read and
    /// hashed every object of that chain.
    pub complete: bool,
    /// Revision at which the source's epoch was sealed, if known.
    pub sealed_revision: Option<i64>,
    /// Changes up to that revision that are in no snapshot, where their loss was accepted.
    pub lost_revisions: Option<i64>,
    /// Objects of the source that look like snapshots, and are not copied because the name cannot be read or
    /// the content cannot be trusted. These objects may hold changes that the chain lacks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_aside: Vec<String>,
}

impl Report {
    /// The objects that this run has neither copied nor found in the target.
    pub(super) fn missing(&self, objects: impl IntoIterator<Item = Snapshot>) -> Vec<Snapshot> {
        let there: HashSet<_> = self.copied.iter().chain(&self.skipped).collect();
        let missing = objects
            .into_iter()
            .filter(|one| !there.contains(&one.to_string()));
        missing.collect()
    }

    /// The summary, short enough for the termination message of a container.
    #[must_use]
    pub fn summary(&self) -> CopySummary {
        CopySummary {
            final_snapshot: self.final_snapshot,
            last_revision: self.last_revision,
            saved: self.saved,
            complete: self.complete,
            sealed_revision: self.sealed_revision,
            lost_revisions: self.lost_revisions,
            left_aside: self
                .left_aside
                .iter()
                .take(MOST_NAMES)
                .map(|name| name.chars().take(LONGEST_NAME).collect())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_summary_with_many_strange_names_fits_into_a_termination_message() {
        let report = Report {
            left_aside: vec!["\u{1f9ca}".repeat(1000); 100],
            ..Report::default()
        };
        let summary = serde_json::to_string(&report.summary()).unwrap();
        assert!(
            summary.len() < 4096 && summary.contains("leftAside"),
            "{}",
            summary.len()
        );
    }
}
