//! The JSON documents of etcd-backup-restore, the process beside etcd. etcd-backup-restore writes these
//! types; the gardenlet (`parts`), etcd-druid and `owner-checks` read these types.
//!
//! | request | success | type |
//! |---|---|---|
//! | `GET /healthz` | 200 | [`SidecarHealth`] |
//! | `GET /readyz` | 200, or 503 | [`Readiness`] |
//! | `GET /ownership` | 200; 404 without an owner check | [`SidecarOwnership`] |
//! | `POST /ownership/sealing`, [`SealingReport`] | 200; 404 without an owner check | [`SealingAnswer`] |
//! | `PUT /gate/prepared-clients`, [`PreparedClientList`] | 200; 404 as above | [`PreparedClientsAnswer`] |
//! | `/snapshot/full`, `/snapshot/delta` | 200 | [`ReportedSnapshot`]; `null` for a delta without changes |
//! | `/snapshot/full?final=true` | 200 | [`FullSnapshot`] |
//! | `GET /snapshot/latest` | 200 | [`LatestSnapshots`] |
//! | `POST /snapshot/resume` | 200 | [`ResumeAnswer`] |
//! | `GET /follow` of a follower | 200 | [`FollowStatus`] |
//! | every request above, failed | 4xx, 5xx | [`ErrorAnswer`] |
//!
//! The containers `initialize` and `copy` leave an [`InitializeSummary`] and a [`CopySummary`] in the
//! termination message.
//!
//! Seeds are upgraded at different times, so a reader may be older or newer than the server:
//! - A reader ignores a field that the reader does not know, and reads an unknown word of an enum as the last
//!   variant of the enum.
//! - A field that an older server does not write is optional. The comment of the field states the meaning of
//!   an absent value. In a flag and in a number that a proof needs, `null` means absent.
//! - The name and the type of a field never change. The tests compare the documents with literal JSON.
//! - The order of fields in a document has no meaning.

mod error_class;
mod follow;
mod health;
mod ownership;
mod prepared_clients;
mod reports;
mod snapshots;

pub use error_class::{ErrorAnswer, ErrorClass};
pub use follow::{FollowPhase, FollowStatus};
pub use health::{Readiness, ReliefResult, ReportedRelief, ReportedSpace, SidecarHealth, SnapshotterPhase};
pub use ownership::{EtcdGateState, SealingAnswer, SealingReport, SidecarOwnership};
pub use prepared_clients::{
    PREPARED_CLIENT_UNIT, PREPARED_CLIENTS_PATH, PreparedClient, PreparedClientList, PreparedClientsAnswer,
};
pub use reports::{CopySummary, EpochBegin, InitializeSummary, ReportedVolumeLoss};
pub use snapshots::{FullSnapshot, LatestSnapshots, ReportedSnapshot, ResumeAnswer, SnapshotProof};

use serde::{Deserialize, Deserializer};

/// Reads `null` as the default value.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

#[cfg(test)]
mod round_trip {
    #![allow(clippy::unwrap_used)]
    use serde::{Serialize, de::DeserializeOwned};
    use serde_json::Value;

    /// Reads the document as `T`, and fails if the written value differs from the document. An unknown field
    /// must not change the value. The server writes each document through [`Value`], and so sorts the fields.
    pub(crate) fn assert_round_trip<T: DeserializeOwned + Serialize>(document: &str) -> T {
        let read: T = serde_json::from_str(document).unwrap();
        let written = serde_json::to_value(&read).unwrap();
        assert_eq!(written.to_string(), document);
        let mut newer: Value = serde_json::from_str(document).unwrap();
        newer["fieldOfANewerServer"] = Value::from(7);
        let read_newer: T = serde_json::from_value(newer).unwrap();
        assert_eq!(serde_json::to_value(&read_newer).unwrap(), written);
        read
    }
}
