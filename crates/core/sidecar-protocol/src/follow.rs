//! The answer of `GET /follow` of a follower.

use crate::null_as_default;
use serde::{Deserialize, Serialize};

/// Phase of a follower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum FollowPhase {
    /// Connecting to the local etcd and to the source for the first time.
    #[default]
    Starting,
    /// Reading delta snapshots of the source.
    CatchingUp,
    /// Reading the watch of the source.
    Following,
    /// The last attempt failed; a new attempt follows.
    Interrupted,
    /// A phase that this version does not know. No process writes this phase.
    #[serde(other)]
    Unknown,
}

/// How far an etcd follows a source etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FollowStatus {
    /// Phase of the follower.
    pub phase: FollowPhase,
    /// The digest begins after this revision of the local etcd.
    pub from_revision: i64,
    /// The local etcd was proved equal to the source up to this revision.
    pub revision: i64,
    /// Newest known revision of the source.
    pub source_revision: i64,
    /// Age of the oldest change of the source that is not proved at the local etcd. Absent means unknown.
    pub lag_milliseconds: Option<u64>,
    /// Digest over the changes after `fromRevision` up to `revision`, as 64 hexadecimal digits. Absent where
    /// there is no change.
    pub digest: Option<String>,
    /// Revision of the last compaction of the local etcd; 0 before the first check.
    #[serde(deserialize_with = "null_as_default")]
    pub compacted_revision: i64,
    /// Number of leases of the local etcd.
    #[serde(deserialize_with = "null_as_default")]
    pub leases: u64,
    /// Whether the last check, at the end of the follower, granted each lease of the source and renewed each
    /// lease. Absent before the end.
    pub leases_complete: Option<bool>,
    /// The last error, if the error persists: `<Class>: <sentence>`.
    pub error: Option<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::round_trip::assert_round_trip;

    #[test]
    fn a_status_keeps_its_json() {
        let status: FollowStatus = assert_round_trip(
            r#"{"compactedRevision":3,"digest":"00ff","error":null,"fromRevision":4,"lagMilliseconds":7,"leases":2,"leasesComplete":true,"phase":"Following","revision":9,"sourceRevision":10}"#,
        );
        assert_eq!(
            (status.phase, status.revision, status.lag_milliseconds),
            (FollowPhase::Following, 9, Some(7))
        );
    }

    #[test]
    fn a_status_of_an_older_or_newer_process_is_read() {
        let status: FollowStatus = serde_json::from_str(r#"{"phase":"Novelty","revision":9}"#).unwrap();
        assert_eq!((status.phase, status.revision), (FollowPhase::Unknown, 9));
        assert_eq!((status.lag_milliseconds, status.digest), (None, None));
        assert_eq!(status.leases_complete, None);
    }
}
