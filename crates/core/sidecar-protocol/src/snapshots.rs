//! The answers about snapshots, with the proof of the final snapshot.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::null_as_default;

/// A snapshot in the store. A field that is absent was not reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReportedSnapshot {
    /// When the snapshot was taken.
    pub created_on: Option<Timestamp>,
    /// Until when the store keeps the object unchanged. The misspelling is the interface.
    #[serde(rename = "immutabilityExpriyTime")]
    pub immutability_expiry_time: Option<Timestamp>,
    /// `Full`, or `Incr` for a delta.
    pub kind: String,
    /// Folder below the prefix; always empty.
    pub snap_dir: String,
    /// Name of the object.
    pub snap_name: Option<String>,
    /// Folder of the snapshots in the bucket.
    pub prefix: String,
    /// Ending of the name for the compression, with the dot.
    pub compression_suffix: String,
    /// First revision inside; 0 for a full snapshot.
    pub start_revision: i64,
    /// The snapshot holds every change up to this revision.
    pub last_revision: Option<i64>,
    /// Whether the object is part of a snapshot; always `false`.
    #[serde(deserialize_with = "null_as_default")]
    pub is_chunk: bool,
    /// Whether the snapshot is marked as the last snapshot of the ownership epoch.
    #[serde(deserialize_with = "null_as_default")]
    pub is_final: bool,
}

/// A full snapshot, with the proof of a final snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullSnapshot {
    /// The snapshot.
    #[serde(flatten)]
    pub snapshot: ReportedSnapshot,
    /// Whether a final snapshot was read back from the store and compared. Absent means `false`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub verified: bool,
    /// The proof of a final snapshot that was read back; absent for a snapshot without a proof.
    #[serde(flatten)]
    pub proof: Option<SnapshotProof>,
}

/// The proof that a final snapshot holds every acknowledged change of an ownership epoch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotProof {
    /// Revision of etcd after the snapshot was read back. Without this revision there is no proof.
    pub etcd_revision: i64,
    /// The ownership epoch that the snapshot ends; absent in the first epoch of an older process.
    pub epoch: Option<i64>,
    /// SHA-256 of the object as stored, in hex.
    pub sha256: Option<String>,
    /// Revision of etcd at the seal of the epoch. Later revisions come from expired leases, so the
    /// snapshot need not hold these. `None` where the snapshot was taken before a seal, and in answers of an
    /// older process.
    pub sealed_revision: Option<i64>,
}

/// The answer of `/snapshot/latest`: the end of the store, from memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LatestSnapshots {
    /// The newest full snapshot.
    pub full_snapshot: Option<FullSnapshot>,
    /// The deltas after the full snapshot, the oldest first.
    #[serde(deserialize_with = "null_as_default")]
    pub delta_snapshots: Vec<ReportedSnapshot>,
    /// Whether the full snapshot is the final snapshot, and no snapshot follows.
    #[serde(deserialize_with = "null_as_default")]
    pub finished: bool,
    /// Ownership epoch of the process.
    pub epoch: Option<i64>,
    /// Revision of etcd at the seal of the epoch; an older process does not report this revision.
    pub sealed_revision: Option<i64>,
}

/// The answer of `/snapshot/resume`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeAnswer {
    /// Whether a final snapshot had been taken.
    pub resumed: bool,
    /// Always `false`: snapshots follow.
    #[serde(default)]
    pub finished: bool,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::round_trip::assert_round_trip;

    const PROVEN: &str = r#"{"compressionSuffix":".gz","createdOn":"2018-02-12T09:27:55Z","epoch":3,"etcdRevision":9,"immutabilityExpriyTime":"2018-02-12T09:27:55Z","isChunk":false,"isFinal":true,"kind":"Full","lastRevision":7,"prefix":"p/v2","sealedRevision":7,"sha256":"aa","snapDir":"","snapName":"Full-00000000-00000007-1518427675.gz.final","startRevision":0,"verified":true}"#;
    const UNPROVEN: &str = r#"{"compressionSuffix":"","createdOn":"2018-02-12T09:27:55Z","immutabilityExpriyTime":"2018-02-12T09:27:55Z","isChunk":false,"isFinal":false,"kind":"Full","lastRevision":7,"prefix":"p/v2","snapDir":"","snapName":"Full-00000000-00000007-1518427675","startRevision":0,"verified":false}"#;
    const DELTA: &str = r#"{"compressionSuffix":"","createdOn":"2018-02-12T09:27:55Z","immutabilityExpriyTime":"2018-02-12T09:27:55Z","isChunk":false,"isFinal":false,"kind":"Incr","lastRevision":9,"prefix":"p/v2","snapDir":"","snapName":"Incr-00000008-00000009-1518427675","startRevision":8}"#;

    /// A requested snapshot is written in the order of the type, not sorted.
    #[test]
    fn a_snapshot_keeps_its_json() {
        let _: ReportedSnapshot = assert_round_trip(DELTA);
        let document = r#"{"createdOn":"2018-02-12T09:27:55Z","immutabilityExpriyTime":"2018-02-12T09:27:55Z","kind":"Full","snapDir":"","snapName":"Full-00000000-00000007-1518427675.gz.final","prefix":"p/v2","compressionSuffix":".gz","startRevision":0,"lastRevision":7,"isChunk":false,"isFinal":true}"#;
        let snapshot: ReportedSnapshot = serde_json::from_str(document).unwrap();
        assert_eq!(serde_json::to_string(&snapshot).unwrap(), document);
    }

    #[test]
    fn a_full_snapshot_keeps_its_json_with_and_without_a_proof() {
        let proven: FullSnapshot = assert_round_trip(PROVEN);
        let proof = proven.proof.unwrap();
        assert_eq!((proof.etcd_revision, proof.sealed_revision), (9, Some(7)));
        let unproven: FullSnapshot = assert_round_trip(UNPROVEN);
        assert_eq!((unproven.verified, unproven.proof), (false, None));
        // Without a seal the answer says `null`.
        let unsealed = PROVEN.replace(r#""sealedRevision":7"#, r#""sealedRevision":null"#);
        let unsealed: FullSnapshot = assert_round_trip(&unsealed);
        assert_eq!(unsealed.proof.unwrap().sealed_revision, None);
    }

    #[test]
    fn the_latest_snapshots_keep_their_json() {
        for (deltas, end) in [
            (format!("[{DELTA}]"), UNPROVEN),
            ("[]".to_owned(), PROVEN),
            ("[]".to_owned(), "null"),
        ] {
            let document = format!(
                r#"{{"deltaSnapshots":{deltas},"epoch":3,"finished":{},"fullSnapshot":{end},"sealedRevision":null}}"#,
                end == PROVEN
            );
            let _: LatestSnapshots = assert_round_trip(&document);
        }
    }

    #[test]
    fn snapshots_of_an_older_process_are_read() {
        let latest: LatestSnapshots =
            serde_json::from_str(r#"{"fullSnapshot":null,"deltaSnapshots":null,"finished":null}"#).unwrap();
        assert_eq!(latest, LatestSnapshots::default());
        let older = r#"{"isFinal":true,"verified":true,"lastRevision":7,"etcdRevision":7}"#;
        let older: FullSnapshot = serde_json::from_str(older).unwrap();
        let proof = older.proof.unwrap();
        assert_eq!((proof.epoch, proof.sha256), (None, None));
        // These answers are no proof.
        for document in [
            r#"{"isFinal":null,"verified":null,"etcdRevision":null}"#,
            r#"{"isFinal":false}"#,
            "{}",
        ] {
            let snapshot: FullSnapshot = serde_json::from_str(document).unwrap();
            assert_eq!(snapshot, FullSnapshot::default(), "{document}");
        }
    }

    #[test]
    fn the_answer_to_resume_keeps_its_json() {
        let _: ResumeAnswer = assert_round_trip(r#"{"finished":false,"resumed":true}"#);
        let older: ResumeAnswer = serde_json::from_str(r#"{"resumed":true}"#).unwrap();
        assert!(older.resumed && !older.finished);
    }
}
