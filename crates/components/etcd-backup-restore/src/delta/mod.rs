//! Delta snapshots: the events of etcd between two revisions.
//!
//! Content: a JSON array of `{"etcdEvent": {"type", "kv"}, "time": ...}`, followed by the 32 bytes of the
//! sha256 of the array. `kv` is `{"key", "create_revision", "mod_revision", "version", "value", "lease"}`,
//! with bytes in base64. The layout equals the layout of Gardener's deltas, down to left-out zero values.

mod reader;
mod writer;

pub use reader::{open_entries, read_entries};
pub use writer::DeltaWriter;

use crate::etcd::messages;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A single change of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The change.
    #[serde(rename = "etcdEvent", alias = "EtcdEvent")]
    pub event: Event,
    /// Time at which the event was received, RFC 3339. For humans; no decision depends on it.
    #[serde(alias = "Time", default)]
    pub time: String,
    /// TTL in seconds with which the lease of the key was granted; an addition of Repot that other readers
    /// skip.
    #[serde(rename = "leaseTTL", default, skip_serializing_if = "is_zero")]
    pub lease_ttl: i64,
}

/// The change as etcd reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// 0 is a put, 1 a delete.
    #[serde(rename = "type", default, skip_serializing_if = "is_zero")]
    pub kind: i64,
    /// The key after the change.
    pub kv: KeyValue,
}

/// A key, its value and its counters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyValue {
    /// Name.
    #[serde(with = "Bytes64", skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<u8>,
    /// Revision in which the key was created.
    #[serde(skip_serializing_if = "is_zero")]
    pub create_revision: i64,
    /// Revision of this change.
    #[serde(skip_serializing_if = "is_zero")]
    pub mod_revision: i64,
    /// Changes since creation.
    #[serde(skip_serializing_if = "is_zero")]
    pub version: i64,
    /// Value.
    #[serde(with = "Bytes64", skip_serializing_if = "Vec::is_empty")]
    pub value: Vec<u8>,
    /// Lease that the key hangs on.
    #[serde(skip_serializing_if = "is_zero")]
    pub lease: i64,
}

impl KeyValue {
    /// The key as etcd's message, with a lease.
    #[must_use]
    pub fn with_lease(self, lease: i64) -> messages::KeyValue {
        messages::KeyValue {
            key: self.key.into(),
            create_revision: self.create_revision,
            mod_revision: self.mod_revision,
            version: self.version,
            value: self.value.into(),
            lease,
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // the signature is serde's
fn is_zero(number: &i64) -> bool {
    *number == 0
}

/// Bytes as base64, `null` as none.
struct Bytes64;

impl Bytes64 {
    fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?.unwrap_or_default();
        STANDARD.decode(text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::compression::Compression;
    use crate::integrity::TrailerCheck;
    use tokio::io::AsyncReadExt;

    fn entry(revision: i64, kind: i64, value: &[u8]) -> Entry {
        let key = format!("/registry/{revision}").into_bytes();
        let kv = KeyValue {
            key,
            mod_revision: revision,
            value: value.to_vec(),
            ..KeyValue::default()
        };
        Entry {
            event: Event { kind, kv },
            time: "2026-01-01T00:00:00Z".into(),
            lease_ttl: 0,
        }
    }

    #[tokio::test]
    async fn what_is_written_is_read_again() {
        let entries: Vec<_> = (5..300)
            .map(|r| {
                entry(
                    r,
                    i64::from(r % 3 == 0),
                    &[1].repeat(usize::try_from(r).unwrap() * 50),
                )
            })
            .collect();
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let mut writer = DeltaWriter::new(compression, 4).unwrap();
            for e in &entries {
                writer.push(e).unwrap();
            }
            let (snapshot, packed) = writer.finish().unwrap().unwrap();
            assert_eq!((snapshot.start_revision, snapshot.last_revision), (4, 299));
            let mut content = Vec::new();
            compression
                .unpack(std::io::Cursor::new(packed))
                .read_to_end(&mut content)
                .await
                .unwrap();
            let mut check = TrailerCheck::default();
            check.update(&content);
            check.finish().unwrap();
            let mut read = Vec::new();
            read_entries(&content[..content.len() - 32], |e| {
                read.push(e);
                Ok(())
            })
            .unwrap();
            assert_eq!(read, entries);
        }
    }

    #[test]
    fn gardeners_own_writing_is_understood() {
        let text = br#"[{"etcdEvent":{"kv":{"key":"L2E=","create_revision":2,"mod_revision":2,"version":1,"value":"PCZ4Pg=="}},"time":"2018-02-12T09:27:55.123456789Z"},{"etcdEvent":{"type":1,"kv":{"key":"L2E=","mod_revision":3}},"time":"2018-02-12T09:27:56+01:00"}]"#;
        let mut read = Vec::new();
        read_entries(&text[..], |e| {
            read.push(e.event);
            Ok(())
        })
        .unwrap();
        assert_eq!(read[0].kv.value, b"<&x>");
        assert_eq!((read[0].kind, read[1].kind), (0, 1));
        assert_eq!(
            (read[1].kv.key.as_slice(), read[1].kv.mod_revision),
            (&b"/a"[..], 3)
        );
    }

    #[test]
    fn content_that_was_cut_or_changed_anywhere_does_no_harm() {
        let text = serde_json::to_vec(&[entry(5, 0, b"value"), entry(6, 1, b"")]).unwrap();
        for at in 0..text.len() {
            assert!(read_entries(&text[..at], |_| Ok(())).is_err(), "cut at {at}");
            for bit in 0..8 {
                let mut changed = text.clone();
                changed[at] ^= 1 << bit;
                // Accepted or refused, but the read must return: the hash detects a change that is still
                // valid JSON.
                let _ = read_entries(&changed[..], |_| Ok(()));
            }
        }
    }

    #[test]
    fn broken_content_is_an_error() {
        for text in [
            "",
            "[",
            "{}",
            "[{}]",
            r#"[{"etcdEvent":{"kv":{"key":"!"}}}]"#,
            "[] x",
            r#"[{"etcdEvent":{"kv":{}}}"#,
        ] {
            assert!(read_entries(text.as_bytes(), |_| Ok(())).is_err(), "{text}");
        }
        assert!(read_entries(&b"[]"[..], |_| Ok(())).is_ok());
    }
}
