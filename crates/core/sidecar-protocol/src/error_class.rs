//! The classes of errors, and the body of an answer with an error status.

use serde::{Deserialize, Serialize};

/// Longest quoted part of an answer that is not JSON, in characters.
const QUOTED: usize = 300;

/// Class of an error: determines the process or person that must act.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// A flag or a mounted file is wrong.
    Configuration,
    /// The object store refuses the credentials.
    Credentials,
    /// The object store does not answer, or the bucket does not exist.
    Store,
    /// The content of an object does not match the hash of the object.
    SnapshotCorrupt,
    /// The chain has a hole, or there is no snapshot to restore from.
    SnapshotMissing,
    /// An object looks like a snapshot and cannot be parsed.
    SnapshotUnparsable,
    /// The content of a final snapshot that was read back differs from the written content.
    SnapshotUnverified,
    /// etcd was written to while the final snapshot was taken.
    Overtaken,
    /// A more urgent request came first, or the time was up; repeat the request.
    Interrupted,
    /// The store or the volume belongs to a different ownership epoch.
    OtherEpoch,
    /// etcd does not answer.
    Etcd,
    /// etcd no longer has the history that a delta snapshot needs; a full snapshot is needed.
    Compacted,
    /// An error of the data directory or of the volume.
    DataDirectory,
    /// `etcd` or `etcdutl` could not be run, or failed.
    Tool,
    /// The process does not have the right to act any more.
    NotPermitted,
    /// A final snapshot was taken; no snapshot follows until a request to resume.
    Finished,
    /// The server is going away.
    Stopping,
    /// A followed etcd and the copy differ; the copy must not be used.
    Diverged,
    /// A class that this version does not know. No process writes this class.
    #[serde(other)]
    Unknown,
}

impl ErrorClass {
    /// All classes that a process writes.
    pub const ALL: [Self; 18] = [
        Self::Configuration,
        Self::Credentials,
        Self::Store,
        Self::SnapshotCorrupt,
        Self::SnapshotMissing,
        Self::SnapshotUnparsable,
        Self::SnapshotUnverified,
        Self::Overtaken,
        Self::Interrupted,
        Self::OtherEpoch,
        Self::Etcd,
        Self::Compacted,
        Self::DataDirectory,
        Self::Tool,
        Self::NotPermitted,
        Self::Finished,
        Self::Stopping,
        Self::Diverged,
    ];

    /// The class as written in JSON answers and in log fields.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Credentials => "credentials",
            Self::Store => "store",
            Self::SnapshotCorrupt => "snapshot-corrupt",
            Self::SnapshotMissing => "snapshot-missing",
            Self::SnapshotUnparsable => "snapshot-unparsable",
            Self::SnapshotUnverified => "snapshot-unverified",
            Self::Overtaken => "overtaken",
            Self::Interrupted => "interrupted",
            Self::OtherEpoch => "other-epoch",
            Self::Etcd => "etcd",
            Self::Compacted => "compacted",
            Self::DataDirectory => "data-directory",
            Self::Tool => "tool",
            Self::NotPermitted => "not-permitted",
            Self::Finished => "finished",
            Self::Stopping => "stopping",
            Self::Diverged => "diverged",
            Self::Unknown => "unknown",
        }
    }

    /// The class as written at the begin of a printed sentence, before `: `.
    #[must_use]
    pub fn prefix(self) -> &'static str {
        match self {
            Self::Configuration => "Configuration",
            Self::Credentials => "StoreCredentials",
            Self::Store => "StoreUnavailable",
            Self::SnapshotCorrupt => "SnapshotCorrupt",
            Self::SnapshotMissing => "SnapshotMissing",
            Self::SnapshotUnparsable => "SnapshotUnparsable",
            Self::SnapshotUnverified => "SnapshotUnverified",
            Self::Overtaken => "FinalSnapshotOvertaken",
            Self::Interrupted => "Interrupted",
            Self::OtherEpoch => "OtherEpoch",
            Self::Etcd => "EtcdUnavailable",
            Self::Compacted => "EtcdCompacted",
            Self::DataDirectory => "DataDirectory",
            Self::Tool => "Tool",
            Self::NotPermitted => "NotPermitted",
            Self::Finished => "FinalSnapshotTaken",
            Self::Stopping => "Stopping",
            Self::Diverged => "EtcdDiverged",
            Self::Unknown => "Unknown",
        }
    }

    /// The class at the begin of a printed sentence.
    #[must_use]
    pub fn from_sentence(sentence: &str) -> Option<Self> {
        let (prefix, _) = sentence.split_once(':')?;
        Self::ALL.into_iter().find(|class| class.prefix() == prefix)
    }
}

/// The body of an answer with an error status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorAnswer {
    /// The class; absent in the answer of a different process, for example a proxy.
    pub code: Option<ErrorClass>,
    /// `<Class>: <sentence with the remedy>`. No secrets.
    pub error: Option<String>,
}

impl ErrorAnswer {
    /// Reads the body of an answer with an error status. A body that is not a JSON object, such as the page
    /// of a proxy, becomes the sentence, cut to 300 characters.
    #[must_use]
    pub fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_else(|_| Self {
            code: None,
            error: Some(String::from_utf8_lossy(body).chars().take(QUOTED).collect()),
        })
    }

    /// The sentence, for a message.
    #[must_use]
    pub fn sentence(&self) -> &str {
        self.error.as_deref().unwrap_or("no reason is reported")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::round_trip::assert_round_trip;

    #[test]
    fn a_class_is_the_same_word_in_json_and_in_logs() {
        for class in ErrorClass::ALL {
            let written = serde_json::to_string(&class).unwrap();
            assert_eq!(written, format!("\"{}\"", class.as_str()));
            assert_eq!(serde_json::from_str::<ErrorClass>(&written).unwrap(), class);
            let sentence = format!("{}: the cause: the remedy", class.prefix());
            assert_eq!(ErrorClass::from_sentence(&sentence), Some(class));
        }
        assert_eq!(ErrorClass::from_sentence("Novelty: cause"), None);
        assert_eq!(ErrorClass::from_sentence("StoreCredentials"), None);
    }

    #[test]
    fn a_refusal_keeps_its_json() {
        let refusal: ErrorAnswer =
            assert_round_trip(r#"{"code":"other-epoch","error":"OtherEpoch: of epoch 4"}"#);
        assert_eq!(refusal.code, Some(ErrorClass::OtherEpoch));
    }

    #[test]
    fn a_refusal_of_a_newer_process_or_of_a_proxy_keeps_its_sentence() {
        for (body, code, sentence) in [
            (
                r#"{"code":"novelty","error":"Novelty: cause"}"#,
                Some(ErrorClass::Unknown),
                "Novelty: cause",
            ),
            (
                r#"{"code":"etcd"}"#,
                Some(ErrorClass::Etcd),
                "no reason is reported",
            ),
            ("{}", None, "no reason is reported"),
            ("<html>", None, "<html>"),
            ("", None, ""),
        ] {
            let refusal = ErrorAnswer::read(body.as_bytes());
            assert_eq!((refusal.code, refusal.sentence()), (code, sentence), "{body}");
        }
        assert_eq!(ErrorAnswer::read(&[b'x'; 1000]).sentence().len(), QUOTED);
    }
}
