//! Decides the action for each line of the table. Pure.

use std::collections::BTreeMap;

use api::constants;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use runtime::{Error, Result};
use sha2::{Digest, Sha256};

use super::{
    config::{Config, Recipe},
    issue::Data,
};
use crate::{configuration_problem, hex::hex};

/// A derived certificate is renewed this long before expiry. Longer than the longest pause between two
/// reconciliations of a shoot.
pub(crate) const RENEW_BEFORE: jiff::SignedDuration = jiff::SignedDuration::from_hours(30 * 24);

/// The fault of a ShootState without the Secret.
pub(super) const NOT_HELD: &str = "the ShootState does not hold it";

/// Action for a Secret.
#[derive(Debug)]
pub(super) enum Action {
    /// The Secret exists and is current.
    Keep,
    /// The Secret is restored as on the former seed.
    Restore(Box<Secret>),
    /// The Secret is created.
    Issue,
}

/// Permitted action for a missing carried Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The shoot is new (or is being deleted): the Secret is created.
    Issue,
    /// The shoot is in use: the Secret must come from the ShootState. A new Secret would cut off the clients
    /// that trust the old Secret.
    FromShootState,
}

/// The Secrets in the seed, by name.
pub(super) type Existing = BTreeMap<String, Secret>;

/// Decides for a line of the table. Lines are decided in sequence, since a derived Secret depends on
/// authorities that come before the line in `existing`. `carried`: the missing Secrets in the ShootState, if
/// the ShootState exists.
pub(super) fn decide(
    config: &Config,
    existing: &Existing,
    carried: Option<&Existing>,
    missing: Missing,
    now: Timestamp,
) -> Result<Action> {
    if let Some(secret) = existing.get(config.name) {
        if config.carried || is_current(config, secret, existing, now) {
            return Ok(Action::Keep);
        }
        return Ok(Action::Issue);
    }
    if !config.carried {
        return Ok(Action::Issue);
    }
    if let Some(secret) = carried.and_then(|carried| carried.get(config.name)) {
        return Ok(Action::Restore(Box::new(with_own_keys(config, secret.clone()))));
    }
    if missing == Missing::Issue || config.replaceable {
        return Ok(Action::Issue);
    }
    let place = if carried.is_some() {
        NOT_HELD
    } else {
        "there is no ShootState"
    };
    Err(missing_key(config, place))
}

/// The error for a carried Secret that neither the seed nor the ShootState has. `place`: the fault of the
/// ShootState.
pub(super) fn missing_key(config: &Config, place: &str) -> Error {
    configuration_problem(format!(
        "Secret {} is not in the shoot's namespace and {place}. No new one is made in its place, since that would cut \
         off nodes and users of the cluster: put the former Secret into the namespace or the ShootState",
        config.name
    ))
}

/// The Secret without data keys that no gardenlet writes: the seed that wrote the ShootState may be hostile.
pub(super) fn with_own_keys(config: &Config, mut secret: Secret) -> Secret {
    let keys = config.recipe.keys();
    if let Some(data) = &mut secret.data {
        data.retain(|key, _| keys.contains(&key.as_str()));
    }
    secret
}

fn is_current(config: &Config, secret: &Secret, existing: &Existing, now: Timestamp) -> bool {
    let lasts = valid_until(secret).is_none_or(|end| end.duration_since(now) > RENEW_BEFORE);
    lasts && label(secret, constants::CHECKSUM_OF_CONFIG) == Some(checksum(config, existing).as_str())
}

/// The recorded end of validity. `None` for a Secret that does not expire.
pub(super) fn valid_until(secret: &Secret) -> Option<Timestamp> {
    let text = label(secret, constants::VALID_UNTIL_TIME)?;
    Timestamp::from_second(text.parse().ok()?).ok()
}

fn label<'a>(secret: &'a Secret, key: &str) -> Option<&'a str> {
    let labels = secret.metadata.labels.as_ref()?;
    labels.get(key).map(String::as_str)
}

/// Changes when the content of the Secret must change: with the recipe, and with the authorities. Short
/// enough for a label.
pub(super) fn checksum(config: &Config, existing: &Existing) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{:?}", config.recipe));
    if let Recipe::Certificate { ca, kubeconfig, .. } = &config.recipe {
        let trusted = kubeconfig.is_some().then_some(super::config::CA);
        for authority in std::iter::once(*ca).chain(trusted) {
            let certificate = existing
                .get(authority)
                .and_then(|secret| secret.data.as_ref()?.get("ca.crt"));
            hash.update(certificate.map(|bytes| bytes.0.as_slice()).unwrap_or_default());
        }
    }
    hex(&hash.finalize()[..8])
}

/// The data of a Secret.
pub(super) fn data_of(secret: &Secret) -> Data {
    secret
        .data
        .iter()
        .flatten()
        .map(|(key, value)| (key.clone(), value.0.clone()))
        .collect()
}

/// The data of each Secret, by the name of the Secret.
pub(super) fn data_by_name(existing: &Existing) -> BTreeMap<&str, Data> {
    let all = existing.iter();
    all.map(|(name, secret)| (name.as_str(), data_of(secret)))
        .collect()
}

pub(super) fn in_namespace(mut secret: Secret, namespace: &str) -> Secret {
    secret.metadata.namespace = Some(namespace.to_owned());
    secret
}
