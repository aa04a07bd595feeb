//! The last lines of `initialize` and `copy` in the termination messages of the containers. A kubelet keeps
//! 4096 bytes of a message.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The report of `initialize`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeSummary {
    /// `Kept`: the data directory was sound. `Restored`: the newest chain was restored. `Fresh`: the store
    /// holds no snapshot.
    pub result: String,
    /// Revision of etcd at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Set where an ownership epoch begins with these data.
    #[serde(flatten)]
    pub begin: Option<EpochBegin>,
    /// Set where etcd may have served in the epoch before the restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume_loss: Option<ReportedVolumeLoss>,
}

/// A new ownership epoch that begins with the data of an earlier epoch. A later start of etcd in the new
/// epoch reports no begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EpochBegin {
    /// The epoch that begins.
    pub epoch: i64,
    /// Last revision of the earlier epoch in these data. The write-ahead log of a volume may hold more.
    pub last_revision: i64,
    /// When the newest snapshot was taken, of data from the store; absent where the name has no valid time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<Timestamp>,
    /// Whether the data hold every change that etcd has acknowledged in the earlier epoch. Absent means
    /// `false`.
    #[serde(default)]
    pub complete: bool,
}

/// The restore of a lost or unusable volume within an ownership epoch. The former etcd may have acknowledged
/// changes that no snapshot has: after the last revision, and between the two times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedVolumeLoss {
    /// The epoch.
    pub epoch: i64,
    /// Last revision in the store.
    pub last_revision: i64,
    /// First revision of etcd after the restore, above every revision of the former etcd.
    pub revision: i64,
    /// When the newest snapshot was taken; absent where the name has no valid time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<Timestamp>,
    /// When etcd was restored.
    pub restored: Timestamp,
}

/// The report of `copy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CopySummary {
    /// Whether the final snapshot of the source was seen.
    pub final_snapshot: bool,
    /// Revision that a restore of the copied chain reaches.
    pub last_revision: i64,
    /// When the newest snapshot of that chain was taken; absent if the name holds no valid time.
    pub saved: Option<Timestamp>,
    /// Whether every change up to the end of the source's epoch is in the copied chain. The copying process
    /// has read and hashed every object of that chain. Absent means `false`.
    #[serde(default)]
    pub complete: bool,
    /// Revision of etcd at the seal of the source's epoch, if known.
    pub sealed_revision: Option<i64>,
    /// Changes up to that revision that are in no snapshot, where the loss was accepted.
    pub lost_revisions: Option<i64>,
    /// Objects of the source that were left aside: the first five names, each cut to 128 characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_aside: Vec<String>,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde::de::DeserializeOwned;

    use super::*;

    /// A report is written in the order of the type, not sorted.
    fn assert_round_trip<T: DeserializeOwned + Serialize>(report: &str) -> T {
        let read: T = serde_json::from_str(report).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), report);
        let newer = report.replacen('{', r#"{"fieldOfANewerProcess":7,"#, 1);
        let newer: T = serde_json::from_str(&newer).unwrap();
        assert_eq!(serde_json::to_string(&newer).unwrap(), report);
        read
    }

    #[test]
    fn a_report_of_initialize_keeps_its_json() {
        let fresh: InitializeSummary = assert_round_trip(r#"{"result":"Fresh"}"#);
        assert_eq!((fresh.revision, fresh.begin), (None, None));
        let _: InitializeSummary = assert_round_trip(r#"{"result":"Kept","revision":49}"#);
        let begin: InitializeSummary = assert_round_trip(
            r#"{"result":"Kept","revision":49,"epoch":3,"lastRevision":48,"complete":true}"#,
        );
        assert_eq!(begin.begin.map(|begin| begin.last_revision), Some(48));
        let _: InitializeSummary = assert_round_trip(
            r#"{"result":"Restored","revision":49,"epoch":3,"lastRevision":49,"saved":"2026-01-01T00:00:00Z","complete":false}"#,
        );
        let loss: InitializeSummary = assert_round_trip(
            r#"{"result":"Restored","revision":100000832,"volumeLoss":{"epoch":3,"lastRevision":832,"revision":100000832,"saved":"2026-01-01T00:00:00Z","restored":"2026-01-01T00:01:30Z"}}"#,
        );
        assert_eq!(loss.begin, None);
        assert_eq!(loss.volume_loss.map(|loss| loss.epoch), Some(3));
    }

    #[test]
    fn a_report_of_copy_keeps_its_json() {
        let _: CopySummary = assert_round_trip(
            r#"{"finalSnapshot":true,"lastRevision":832,"saved":"2026-01-01T00:00:00Z","complete":true,"sealedRevision":832,"lostRevisions":null}"#,
        );
        let _: CopySummary = assert_round_trip(
            r#"{"finalSnapshot":false,"lastRevision":0,"saved":null,"complete":false,"sealedRevision":849,"lostRevisions":17,"leftAside":["Full-1"]}"#,
        );
    }

    #[test]
    fn reports_of_an_older_process_are_read() {
        let older = r#"{"finalSnapshot":false,"lastRevision":832}"#;
        let copied: CopySummary = serde_json::from_str(older).unwrap();
        assert_eq!((copied.complete, copied.sealed_revision), (false, None));
        let older = r#"{"result":"Kept","revision":49,"epoch":3,"lastRevision":49}"#;
        let begin: InitializeSummary = serde_json::from_str(older).unwrap();
        assert_eq!(begin.begin.map(|begin| begin.complete), Some(false));
    }
}
