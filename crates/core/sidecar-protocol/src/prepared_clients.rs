//! The certificates of preparations that the gate in front of etcd admits: `PUT /gate/prepared-clients`.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::null_as_default;

/// Path of the request. An older process answers 404, and no list changes the rules of such a gate.
pub const PREPARED_CLIENTS_PATH: &str = "/gate/prepared-clients";

/// Organizational unit in the subject of a certificate that was issued for a preparation. No further
/// certificate of etcd's CA has an organizational unit, and a gate compares the presence alone.
pub const PREPARED_CLIENT_UNIT: &str = "gardener.cloud:preparation";

/// The body of the request. Each list replaces the former list. Certificates without an organizational unit
/// are not subject to the list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreparedClientList {
    /// The ownership epoch of the source.
    pub epoch: i64,
    /// Validity of the list in milliseconds, from the time of the request. Absent means zero, and no
    /// certificate of a preparation is admitted.
    #[serde(default)]
    pub valid_for_milliseconds: u64,
    /// The certificates. Absent means none.
    #[serde(default, deserialize_with = "null_as_default")]
    pub clients: Vec<PreparedClient>,
}

/// A certificate of a preparation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreparedClient {
    /// Serial number as in the certificate, in lower-case hexadecimal digits.
    pub serial: String,
    /// The end of the grant.
    pub expiry: Timestamp,
}

/// The answer of a process with a gate that follows the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreparedClientsAnswer {
    /// The ownership epoch of the process.
    pub epoch: i64,
    /// Number of admitted certificates. An expired certificate does not count.
    pub admitted: u64,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::round_trip::assert_round_trip;

    #[test]
    fn a_list_and_its_answer_keep_their_json() {
        let list: PreparedClientList = assert_round_trip(
            r#"{"clients":[{"expiry":"2026-01-01T00:00:00Z","serial":"4a0f"}],"epoch":3,"validForMilliseconds":60000}"#,
        );
        assert_eq!(list.clients[0].serial, "4a0f");
        assert_eq!(list.clients[0].expiry.as_second(), 1_767_225_600);
        let _: PreparedClientsAnswer = assert_round_trip(r#"{"admitted":1,"epoch":3}"#);
    }

    /// A list that this version understands in part admits no certificate.
    #[test]
    fn a_list_of_an_older_or_newer_process_admits_none_by_default() {
        for list in [
            r#"{"epoch":3}"#,
            r#"{"epoch":3,"clients":null,"novelty":["4a0f"]}"#,
        ] {
            let list: PreparedClientList = serde_json::from_str(list).unwrap();
            assert_eq!((list.epoch, list.valid_for_milliseconds), (3, 0));
            assert!(list.clients.is_empty());
        }
        let unread = serde_json::from_str::<PreparedClientList>(r#"{"epoch":3,"clients":[{"serial":"4a"}]}"#);
        assert!(unread.is_err(), "{unread:?}");
    }
}
