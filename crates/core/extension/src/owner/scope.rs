//! The operations that need the permit of a shoot's owner. Pure.

use api::{constants::OWNERSHIP_EPOCH, extensions::ExtensionObject};
use kube::ResourceExt;
use serde_json::json;

use crate::{Operation, Role, kind};

/// Whether the owner's permit is needed. Not needed for the release of objects in this seed (RX-42), for
/// objects without a shoot, and for the owner record. The owner record is written before the record can be
/// confirmed; the writes are conditional instead.
#[must_use]
pub fn concerns<K: ExtensionObject>(object: &K, operation: Operation) -> bool {
    operation.acts_outside() && Role::for_object(object, None) != Role::Shootless && !is_owner_record(object)
}

/// The annotation alone does not make an owner record: a provider writes every further record regardless of
/// the present value.
fn is_owner_record<K: ExtensionObject>(object: &K) -> bool {
    let is_text = |object: &K| {
        let object = serde_json::to_value(object).unwrap_or_default();
        object.pointer("/spec/recordType") == Some(&json!("TXT"))
    };
    kind::name::<K>() == "DNSRecord" && object.annotations().contains_key(OWNERSHIP_EPOCH) && is_text(object)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::extensions::{BackupEntry, DNSRecord, Infrastructure};
    use serde_json::Value;

    use super::*;

    fn object<K: ExtensionObject>(name: &str, namespace: Option<&str>, annotated: bool, spec: &Value) -> K {
        let mut object = json!({"metadata": {"name": name, "namespace": namespace}, "spec": spec});
        if annotated {
            object["metadata"]["annotations"] = json!({(OWNERSHIP_EPOCH): "1"});
        }
        serde_json::from_value(object).unwrap()
    }

    /// RX-42, and the owner record with its conditional writes.
    #[test]
    fn who_needs_the_owners_right() {
        use Operation::{Create, Delete, ForceDelete, Migrate, Reconcile, Restore};
        let infrastructure: Infrastructure = object(
            "i",
            Some("n"),
            true,
            &json!({"type": "local", "region": "r", "secretRef": {"name": "s"}}),
        );
        for operation in [Create, Reconcile, Restore, Delete, ForceDelete] {
            assert!(concerns(&infrastructure, operation), "{operation:?}");
        }
        assert!(!concerns(&infrastructure, Migrate));

        let record = |annotated, type_: &str| -> DNSRecord {
            let spec = json!({"type": "local", "secretRef": {"name": "s"}, "name": "a.b", "recordType": type_, "values": ["x"]});
            object("web-owner", Some("n"), annotated, &spec)
        };
        assert!(!concerns(&record(true, "TXT"), Reconcile));
        assert!(!concerns(&record(true, "TXT"), Delete));
        // The annotation does not exempt a different record.
        assert!(concerns(&record(true, "A"), Reconcile));
        assert!(concerns(&record(false, "TXT"), Reconcile));

        let entry: BackupEntry = object(
            "e",
            None,
            false,
            &json!({"type": "local", "bucketName": "b", "region": "r", "secretRef": {"name": "s"}}),
        );
        assert!(!concerns(&entry, Reconcile));
    }
}
