//! The running digest over a history.

use crate::revisions::Change;
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// A digest over all changes since a revision: for each revision the keys, values, versions, creation
/// revisions, leases and the order of the changes. The digest of a revision covers the digest before, so that
/// two equal digests at one revision prove two equal histories.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct HistoryDigest([u8; 32]);

impl HistoryDigest {
    /// Adds a revision.
    pub(super) fn add(&mut self, number: i64, changes: &[Change]) {
        let mut hasher = Sha256::new();
        hasher.update(self.0);
        hasher.update(number.to_be_bytes());
        hasher.update((changes.len() as u64).to_be_bytes());
        let mut bytes = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_be_bytes());
            hasher.update(bytes);
        };
        for change in changes {
            match change {
                Change::Put(kv) => {
                    bytes(&kv.key);
                    for number in [kv.create_revision, kv.mod_revision, kv.version, kv.lease] {
                        bytes(&number.to_be_bytes());
                    }
                    bytes(&kv.value);
                }
                Change::Delete(key) => {
                    bytes(key);
                    // No put has a version of zero.
                    bytes(&[]);
                }
            }
        }
        self.0 = hasher.finalize().into();
    }

    /// The digest in hex.
    pub(super) fn hex(self) -> String {
        self.0.iter().fold(String::new(), |mut hex, byte| {
            // Writing to a string does not fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::messages::KeyValue;

    #[test]
    fn each_field_and_the_order_count() {
        let kv = KeyValue {
            key: "a".into(),
            value: "b".into(),
            create_revision: 5,
            mod_revision: 5,
            version: 1,
            lease: 0,
        };
        let digest = |number, changes: &[Change]| {
            let mut digest = HistoryDigest::default();
            digest.add(number, changes);
            digest.hex()
        };
        let other = |change: fn(&mut KeyValue)| {
            let mut kv = kv.clone();
            change(&mut kv);
            digest(5, &[Change::Put(kv)])
        };
        let delete = || Change::Delete("a".into());
        let mut digests = vec![
            digest(5, &[Change::Put(kv.clone())]),
            digest(6, &[Change::Put(kv.clone())]),
            digest(5, &[]),
            digest(5, &[delete()]),
            digest(5, &[delete(), Change::Put(kv.clone())]),
            digest(5, &[Change::Put(kv.clone()), delete()]),
            other(|kv| kv.key = "ab".into()),
            other(|kv| kv.value = bytes::Bytes::new()),
            other(|kv| kv.create_revision = 4),
            other(|kv| kv.mod_revision = 6),
            other(|kv| kv.version = 2),
            other(|kv| kv.lease = 1),
        ];
        let count = digests.len();
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), count);
        assert!(digests.iter().all(|digest| digest.len() == 64));
    }
}
