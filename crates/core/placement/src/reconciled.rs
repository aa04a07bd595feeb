//! Whether the present specification of a Shoot was reconciled. A move takes the shoot along as the
//! specification says, so an edit that the source never reconciled would first be applied during the restore.

use std::fmt::Write;

use api::{
    gardencore::{Shoot, ShootSpec},
    meta::{LastOperationState as State, LastOperationType as Type},
};
use sha2::{Digest, Sha256};

use crate::status;

/// Bytes of the hash that are kept: enough to tell specifications apart.
const HASH_BYTES: usize = 16;

/// The hash that a gardenlet records in `status.reconciledSpecHash`. An edit of `seedName` alone does not
/// change the hash.
#[must_use]
pub fn spec_hash(spec: &ShootSpec) -> String {
    let rest = ShootSpec {
        seed_name: None,
        ..spec.clone()
    };
    // A `serde_json::Value` orders keys, so that equal specifications have equal texts.
    let text = serde_json::to_value(&rest).unwrap_or_default().to_string();
    let mut hash = String::with_capacity(2 * HASH_BYTES);
    for byte in Sha256::digest(text).iter().take(HASH_BYTES) {
        let _ = write!(hash, "{byte:02x}");
    }
    hash
}

/// Whether a seed has reconciled the present specification with success. Also true where a later attempt
/// failed: a seed that became sick does not hold a shoot that has no pending edit.
#[must_use]
pub fn is_reconciled(shoot: &Shoot) -> bool {
    let Some(status) = status(shoot) else {
        return false;
    };
    let has_present_hash = status
        .reconciled_spec_hash
        .as_ref()
        .is_some_and(|hash| *hash == spec_hash(&shoot.spec));
    // A gardenlet of a version with different fields records a different hash, or no hash.
    has_present_hash
        || status.observed_generation == shoot.metadata.generation
            && status.last_operation.as_ref().is_some_and(|last| {
                last.state == State::Succeeded
                    && matches!(last.type_, Type::Create | Type::Reconcile | Type::Restore)
            })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn shoot(generation: i64, version: &str, status: &Value) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "generation": generation},
            "spec": {"seedName": "b", "region": "r", "provider": {"type": "t"}, "kubernetes": {"version": version}},
            "status": status,
        }))
        .unwrap()
    }

    fn last(type_: &str, state: &str) -> Value {
        json!({"type": type_, "state": state, "progress": 1, "description": "", "lastUpdateTime": "2026-01-01T00:00:00Z"})
    }

    #[test]
    fn an_edit_of_the_seed_name_alone_does_not_change_the_hash() {
        let one = shoot(1, "1.34.4", &json!({}));
        let mut moved = one.clone();
        moved.spec.seed_name = Some("c".into());
        assert_eq!(spec_hash(&one.spec), spec_hash(&moved.spec));
        assert_ne!(
            spec_hash(&one.spec),
            spec_hash(&shoot(1, "1.34.5", &json!({})).spec)
        );
    }

    #[test]
    fn a_specification_is_reconciled_by_its_hash_whatever_happened_later() {
        let hash = spec_hash(&shoot(1, "1.34.4", &json!({})).spec);
        for last in [
            last("Reconcile", "Error"),
            last("Reconcile", "Processing"),
            Value::Null,
        ] {
            let status = json!({"seedName": "a", "reconciledSpecHash": hash, "observedGeneration": 3, "lastOperation": last});
            assert!(is_reconciled(&shoot(5, "1.34.4", &status)));
            assert!(!is_reconciled(&shoot(5, "1.35.0", &status)));
        }
    }

    #[test]
    fn without_a_hash_the_observed_generation_and_its_success_count() {
        let status = |generation, type_, state| json!({"seedName": "a", "observedGeneration": generation, "lastOperation": last(type_, state)});
        for type_ in ["Create", "Reconcile", "Restore"] {
            assert!(is_reconciled(&shoot(5, "1.34.4", &status(5, type_, "Succeeded"))));
            for state in ["Error", "Failed", "Processing", "Pending"] {
                assert!(!is_reconciled(&shoot(5, "1.34.4", &status(5, type_, state))));
            }
        }
        assert!(!is_reconciled(&shoot(
            5,
            "1.34.4",
            &status(4, "Reconcile", "Succeeded")
        )));
        assert!(!is_reconciled(&shoot(
            5,
            "1.34.4",
            &status(5, "Migrate", "Succeeded")
        )));
        assert!(!is_reconciled(&shoot(5, "1.34.4", &Value::Null)));
    }
}
