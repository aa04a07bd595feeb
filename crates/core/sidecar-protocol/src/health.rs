//! The answers of `/healthz` and `/readyz`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::null_as_default;

/// Phase of the snapshotter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum SnapshotterPhase {
    /// Waiting for etcd or the store for the first time.
    #[default]
    Starting,
    /// Scheduled snapshots are taken.
    Active,
    /// The last session failed; a new session follows.
    Interrupted,
    /// The final snapshot was taken.
    Finished,
    /// A phase that this version does not know. No process writes this phase.
    #[serde(other)]
    Unknown,
}

/// The answer of `/healthz`, from memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SidecarHealth {
    /// Whether the process works; always `true` in an answer.
    #[serde(default)]
    pub health: bool,
    /// Phase of the snapshotter.
    #[serde(rename = "snapshotter")]
    pub phase: SnapshotterPhase,
    /// The last error, if the error persists: `<Class>: <sentence>`.
    pub error: Option<String>,
    /// Whether a final snapshot was taken; no snapshot follows a final snapshot.
    #[serde(default, deserialize_with = "null_as_default")]
    pub finished: bool,
    /// The room of etcd; absent before the first question, and in answers of an older process.
    pub space: Option<ReportedSpace>,
}

/// The room below etcd's quota.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportedSpace {
    /// Size of the database file, in bytes.
    pub database_bytes: u64,
    /// Bytes of the database file that hold data.
    pub in_use_bytes: u64,
    /// The quota in bytes; 0 where etcd reports no quota (before 3.6).
    pub quota_bytes: u64,
    /// Whether alarm NOSPACE is raised.
    pub no_space: bool,
    /// The last attempt to make room; an older process does not report attempts.
    pub relief: Option<ReportedRelief>,
}

/// The last attempt to make room while etcd refused writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedRelief {
    /// When the attempt ended.
    pub at: Option<Timestamp>,
    /// The result.
    pub result: ReliefResult,
    /// The state of etcd and the remedy, without a full stop.
    pub message: String,
}

/// The result of an attempt to make room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReliefResult {
    /// There is room, and alarm NOSPACE was disarmed.
    Disarmed,
    /// The data alone fill the quota.
    NoRoom,
    /// A result that this version does not know. No process writes this result.
    #[serde(other)]
    Unknown,
}

impl ReliefResult {
    /// The result as written in metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disarmed => "Disarmed",
            Self::NoRoom => "NoRoom",
            Self::Unknown => "Unknown",
        }
    }
}

impl SidecarHealth {
    /// The remedy where compaction and defragmentation made no room for etcd.
    #[must_use]
    pub fn full_database(&self) -> Option<&str> {
        let relief = self.space.as_ref()?.relief.as_ref()?;
        (relief.result == ReliefResult::NoRoom).then_some(relief.message.as_str())
    }

    /// Whether the process takes no snapshots any more.
    #[must_use]
    pub fn has_finished(&self) -> bool {
        self.finished || self.phase == SnapshotterPhase::Finished
    }
}

/// The answer of `/readyz`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Readiness {
    /// Whether clients may be sent to this etcd.
    pub ready: bool,
    /// The reason where clients must not be sent to this etcd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::round_trip::assert_round_trip;

    #[test]
    fn health_keeps_its_json() {
        let starting: SidecarHealth = assert_round_trip(
            r#"{"error":null,"finished":false,"health":true,"snapshotter":"Starting","space":null}"#,
        );
        assert!(!starting.has_finished());
        let full: SidecarHealth = assert_round_trip(
            r#"{"error":"StoreUnavailable: no answer","finished":true,"health":true,"snapshotter":"Finished","space":{"databaseBytes":3,"inUseBytes":2,"noSpace":true,"quotaBytes":4,"relief":{"at":"2026-01-01T00:00:00Z","message":"The data fill etcd","result":"NoRoom"}}}"#,
        );
        assert!(full.has_finished());
        assert_eq!(full.full_database(), Some("The data fill etcd"));
    }

    #[test]
    fn health_of_an_older_or_newer_process_is_read() {
        let older: SidecarHealth = serde_json::from_str(r#"{"snapshotter":"Active"}"#).unwrap();
        assert!(!older.has_finished() && older.error.is_none() && older.full_database().is_none());
        let newer: SidecarHealth = serde_json::from_str(
            r#"{"snapshotter":"Novelty","finished":null,"space":{"relief":{"result":"Novelty","message":"m"}}}"#,
        )
        .unwrap();
        assert_eq!(newer.phase, SnapshotterPhase::Unknown);
        assert!(!newer.has_finished() && newer.full_database().is_none());
    }

    #[test]
    fn readiness_keeps_its_json() {
        let _: Readiness = assert_round_trip(r#"{"ready":true}"#);
        let _: Readiness = assert_round_trip(r#"{"ready":false,"why":"Waiting: "}"#);
    }
}
