//! The gardenlet's own Secrets in a ShootState: the keys of the shoot.
//!
//! No further seed has these keys, so a hostile source must not hide a key behind a field that no reader
//! knows. Each entry is read alone, and by the known data keys alone. All further content of the entry
//! has no effect. An entry that lacks a known data key is an error, because no new key may take its place.

use std::collections::BTreeMap;

use api::{constants, gardencore::GardenerResourceData};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use runtime::Error;
use serde::Deserialize as _;
use serde_json::Value;

use crate::{
    configuration_problem,
    secrets::config::{self, carried_labels},
};

/// Type of each own Secret. The API server checks the data of many types, and would refuse an own Secret of
/// such a type.
const TYPE: &str = "Opaque";
/// Labels of an own Secret with a value that the gardenlet has chosen at the creation.
const CHOSEN_LABELS: &[&str] = &[
    constants::CHECKSUM_OF_CONFIG,
    constants::ISSUED_AT_TIME,
    constants::VALID_UNTIL_TIME,
    constants::ROTATION_STRATEGY,
    constants::LAST_ROTATION_INITIATION_TIME,
];
/// Most bytes of the value of a label, as in the API.
const MOST_LABEL: usize = 63;

/// The own Secret of an entry, or the reason why the entry holds no such Secret.
pub(super) fn known_secret(entry: &GardenerResourceData) -> Result<Secret, String> {
    let keys = config::carried_keys(&entry.name).ok_or_else(|| "no gardenlet creates it".to_owned())?;
    let given = entry.data.0.get("data");
    let mut data = BTreeMap::new();
    for key in keys {
        let value = given.and_then(|given| given.get(*key));
        let value = value.ok_or_else(|| format!("{key} is missing"))?;
        // The decoder's error could quote key material.
        let decoded = ByteString::deserialize(value).map_err(|_| format!("{key} is not base64"))?;
        if decoded.0.is_empty() {
            return Err(format!("{key} is empty"));
        }
        data.insert((*key).to_owned(), decoded);
    }
    let mut secret = Secret {
        data: Some(data),
        immutable: entry.data.0.get("immutable").and_then(Value::as_bool),
        type_: Some(TYPE.to_owned()),
        ..Secret::default()
    };
    secret.metadata.name = Some(entry.name.clone());
    secret.metadata.labels = Some(known_labels(entry));
    Ok(secret)
}

/// The error for a key that has an entry in the ShootState of this name, and cannot be restored.
pub(super) fn broken_key(state: &str, name: &str, why: &str) -> Error {
    configuration_problem(format!(
        "entry {name} in spec.gardener of ShootState {state} does not decode as the Secret of this name ({why}): put its \
         former content back. Nothing was changed and nothing is made in its place"
    ))
}

/// The labels of an own Secret. A label that the API server refuses, or many labels, would stop the restore.
fn known_labels(entry: &GardenerResourceData) -> BTreeMap<String, String> {
    let mut labels = carried_labels(&entry.name);
    for key in CHOSEN_LABELS {
        if let Some(value) = entry.labels.get(*key).filter(|value| is_label_value(value)) {
            labels.insert((*key).to_owned(), value.clone());
        }
    }
    labels
}

/// Whether a gardenlet writes such a value: letters and digits alone.
fn is_label_value(value: &str) -> bool {
    value.len() <= MOST_LABEL && value.chars().all(|letter| letter.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;
    use crate::shoot_state::entries::to_entry;

    fn entry(value: Value) -> GardenerResourceData {
        serde_json::from_value(value).unwrap()
    }

    fn honest() -> Value {
        let labels = json!({"name": "ca", "managed-by": "secrets-manager", "manager-identity": "gardenlet", "persist": "true",
            "issued-at-time": "1767225600", "checksum-of-config": "0a1b2c3d"});
        json!({"name": "ca", "type": "secret", "labels": labels,
            "data": {"data": {"ca.crt": "Y3J0", "ca.key": "a2V5"}, "immutable": true, "type": "Opaque"}})
    }

    /// The attack: a field beside the keys keeps the next seed from the keys.
    #[test]
    fn planted_content_hides_no_key() {
        let expected = known_secret(&entry(honest())).unwrap();
        assert_eq!(
            to_entry(&expected).unwrap(),
            entry(honest()),
            "honest content stays"
        );
        for (pointer, value) in [
            ("/data/x", json!(1)),
            ("/data/stringData", json!({"ca.key": "planted"})),
            ("/data/data/foreign", json!("no base64")),
            ("/data/data/foreign", json!(7)),
            ("/data/data/foreign", json!("dg==")),
            ("/data/type", json!(7)),
            ("/data/type", json!("kubernetes.io/tls")),
            ("/data/type", json!("kubernetes.io/service-account-token")),
            ("/labels/no label!", json!("x")),
            ("/labels/persist", json!("false")),
            ("/labels/manager-identity", json!("somebody")),
        ] {
            let mut planted = honest();
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            planted.pointer_mut(parent).unwrap()[key] = value;
            let found = known_secret(&entry(planted)).unwrap();
            assert_eq!(found, expected, "{pointer}");
        }
    }

    #[test]
    fn malformed_fields_beside_the_keys_are_left_out() {
        let mut planted = honest();
        planted["data"]["immutable"] = json!("x");
        planted["labels"] = json!({"issued-at-time": "x".repeat(64), "checksum-of-config": "a/b"});
        let found = known_secret(&entry(planted)).unwrap();
        let expected = known_secret(&entry(honest())).unwrap();
        assert_eq!((found.data, found.immutable), (expected.data, None));
        assert_eq!(found.metadata.labels, Some(carried_labels("ca")));
    }

    /// No new key may take the place of a broken key, so the broken key stops the restore.
    #[test]
    fn a_broken_key_is_an_error_without_its_content() {
        for (value, reason) in [
            (Some(json!("hunter2!")), "ca.key is not base64"),
            (Some(json!({"hunter2": 1})), "ca.key is not base64"),
            (Some(json!(null)), "ca.key is empty"),
            (Some(json!("")), "ca.key is empty"),
            (None, "ca.key is missing"),
        ] {
            let mut broken = honest();
            match value {
                Some(value) => broken["data"]["data"]["ca.key"] = value,
                None => drop(broken["data"]["data"].as_object_mut().unwrap().remove("ca.key")),
            }
            assert_eq!(known_secret(&entry(broken)).unwrap_err(), reason);
        }
        for data in [json!({}), json!({"data": "no map"}), json!({"data": null})] {
            let mut broken = honest();
            broken["data"] = data;
            assert_eq!(known_secret(&entry(broken)).unwrap_err(), "ca.crt is missing");
        }
    }
}
