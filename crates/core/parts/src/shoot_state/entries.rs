//! Converts carried Secrets to entries of a ShootState and back, byte for byte (R7-22, R7-41, I7).

use std::collections::BTreeMap;

use api::{
    constants,
    gardencore::{GardenerResourceData, ShootState},
    meta::RawExtension,
};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::ResourceExt;
use runtime::{Error, Result};
use serde::{Deserialize, Serialize};

use crate::configuration_problem;

/// Type of entries of `spec.gardener` that are Secrets.
pub const ENTRY_TYPE: &str = "secret";

/// The data of an entry for a Secret. Unknown fields are refused, so that no field is dropped silently.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretState {
    /// Values in base64, as in the API.
    data: BTreeMap<String, ByteString>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    immutable: Option<bool>,
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    type_: Option<String>,
}

/// The entries of a ShootState for the carried Secrets among `secrets`, in the order of the names.
pub fn to_shoot_state(secrets: &[Secret]) -> Result<Vec<GardenerResourceData>> {
    let mut entries = secrets
        .iter()
        .filter(|secret| is_carried(secret))
        .map(to_entry)
        .collect::<Result<Vec<_>>>()?;
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

/// The Secrets in a ShootState, without a namespace. An entry that does not decode is an error that names the
/// entry: no new Secret may replace the entry.
pub fn from_shoot_state(state: &ShootState) -> Result<Vec<Secret>> {
    state
        .spec
        .gardener
        .iter()
        .filter(|entry| entry.type_ == ENTRY_TYPE)
        .map(|entry| to_secret(&state.name_any(), entry))
        .collect()
}

/// Whether a Secret goes with the shoot to another seed.
#[must_use]
pub fn is_carried(secret: &Secret) -> bool {
    secret
        .labels()
        .get(constants::PERSIST)
        .is_some_and(|value| value == "true")
}

/// The entry for a Secret.
pub(super) fn to_entry(secret: &Secret) -> Result<GardenerResourceData> {
    let state = SecretState {
        data: secret.data.clone().unwrap_or_default(),
        immutable: secret.immutable,
        type_: secret.type_.clone(),
    };
    Ok(GardenerResourceData {
        name: secret.name_any(),
        type_: ENTRY_TYPE.into(),
        data: RawExtension::encode(&state)
            .map_err(|e| Error::bug("a Secret cannot be encoded").caused_by(e))?,
        labels: secret.labels().clone(),
    })
}

/// The Secret of an entry in the ShootState of this name.
pub(super) fn to_secret(state: &str, entry: &GardenerResourceData) -> Result<Secret> {
    decode(entry).ok_or_else(|| {
        configuration_problem(format!(
            "entry {} in spec.gardener of ShootState {} does not decode as a Secret (data, type, immutable): put its \
             former content back. Nothing was changed and nothing is made in its place",
            entry.name, state
        ))
    })
}

/// The Secret of an entry, or `None` for an entry that does not decode. The decoder's error is dropped,
/// because the error text could quote key material.
pub(super) fn decode(entry: &GardenerResourceData) -> Option<Secret> {
    let decoded: SecretState = entry.data.decode().ok()?;
    let mut secret = Secret {
        data: Some(decoded.data),
        immutable: decoded.immutable,
        type_: decoded.type_,
        ..Secret::default()
    };
    secret.metadata.name = Some(entry.name.clone());
    secret.metadata.labels = Some(entry.labels.clone());
    Some(secret)
}
