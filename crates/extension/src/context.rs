//! What an actuator is given with each call.

use std::{collections::BTreeMap, sync::Arc};

use api::{
    extensions::{Cluster as ClusterObject, ExtensionObject},
    meta::{ErrorCode, RawExtension},
};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use runtime::{Cluster, Error, Result, Seed, apply::FieldManager, error::Context as _};
use serde::de::DeserializeOwned;

/// The object, its surroundings and the seed.
pub struct Context<K> {
    /// The seed in which the object lives.
    pub seed: Seed,
    /// Who writes.
    pub manager: FieldManager,
    /// The object, as it was when the operation began.
    pub object: Arc<K>,
    /// What is known of the shoot. Missing for objects that belong to no shoot, and where the shoot is going away.
    pub cluster: Option<ClusterObject>,
}

impl<K: ExtensionObject> Context<K> {
    /// The object's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.object.name_any()
    }

    /// The object's namespace: the shoot's technical id.
    pub fn namespace(&self) -> Result<String> {
        self.object
            .namespace()
            .ok_or_else(|| Error::bug(format!("{} has no namespace", K::kind(&()))))
    }

    /// The provider's own configuration, or its default where none is given.
    pub fn provider_config<T: DeserializeOwned + Default>(&self) -> Result<T> {
        decode(
            self.object.default_spec().provider_config.as_ref(),
            "spec.providerConfig",
        )
        .map(Option::unwrap_or_default)
    }

    /// The state that an earlier reconciliation, here or on another seed, has left (RX-31).
    pub fn state<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        decode(
            self.object
                .default_status()
                .and_then(|status| status.state.as_ref()),
            "status.state",
        )
    }

    /// Content of the Secret with the provider's credentials.
    pub async fn credentials(&self) -> Result<Credentials> {
        let reference = self
            .object
            .secret_ref()
            .ok_or_else(|| Error::bug(format!("{} refers to no secret", K::kind(&()))))?;
        let name = reference.name.clone().unwrap_or_default();
        let namespace = match (&reference.namespace, self.object.namespace()) {
            (Some(namespace), _) if !namespace.is_empty() => namespace.clone(),
            (_, Some(namespace)) => namespace,
            _ => {
                return Err(Error::config(
                    ErrorCode::ErrConfigurationProblem,
                    format!(
                        "spec.secretRef of {} {} names no namespace: add one",
                        K::kind(&()),
                        self.name()
                    ),
                ));
            }
        };
        let secret = self
            .seed
            .namespaced::<Secret>(&namespace)
            .get_opt(&name)
            .await
            .context(format_args!("could not read the Secret {namespace}/{name}"))?
            .ok_or_else(|| {
                Error::config(
                    ErrorCode::ErrConfigurationProblem,
                    format!("the Secret {namespace}/{name} with the provider's credentials does not exist: create it"),
                )
            })?;
        let data = secret
            .data
            .unwrap_or_default()
            .into_iter()
            .map(|(key, value)| (key, value.0))
            .collect();
        Ok(Credentials {
            origin: format!("{namespace}/{name}"),
            data,
        })
    }
}

/// Content of a credentials Secret. Does not print its values.
pub struct Credentials {
    origin: String,
    data: BTreeMap<String, Vec<u8>>,
}

impl Credentials {
    /// Credentials from elsewhere than a Secret of the seed; `origin` names it in messages.
    #[must_use]
    pub fn new(origin: impl Into<String>, data: BTreeMap<String, Vec<u8>>) -> Self {
        Self {
            origin: origin.into(),
            data,
        }
    }

    /// Where they come from, for messages: `namespace/name` of the Secret.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// All entries.
    #[must_use]
    pub fn data(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.data
    }

    /// The text of an entry that must be there.
    pub fn text(&self, key: &str) -> Result<String> {
        self.optional_text(key)?.ok_or_else(|| {
            Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!("the Secret {} has no key {key:?}: add it", self.origin),
            )
        })
    }

    /// The text of an entry that may be missing; an empty one counts as missing.
    pub fn optional_text(&self, key: &str) -> Result<Option<String>> {
        let Some(value) = self.data.get(key) else {
            return Ok(None);
        };
        let text = std::str::from_utf8(value).map_err(|_| {
            Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "key {key:?} of the Secret {} is not text: correct it",
                    self.origin
                ),
            )
        })?;
        Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty()))
    }
}

fn decode<T: DeserializeOwned>(raw: Option<&RawExtension>, field: &str) -> Result<Option<T>> {
    raw.filter(|raw| !raw.0.is_null())
        .map(RawExtension::decode)
        .transpose()
        .map_err(|e| {
            Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!("{field} cannot be understood: {e}; correct it"),
            )
        })
}
