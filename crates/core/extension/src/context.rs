//! The input of each call of an actuator.

use std::sync::Arc;

use api::{
    constants::WRITTEN_IN_EPOCH,
    extensions::{Cluster as ClusterObject, ExtensionObject},
    meta::{ErrorCode, PackedExtension, RawExtension},
};
use k8s_openapi::{NamespaceResourceScope, api::core::v1::Secret};
use kube::{Api, Resource, ResourceExt};
use runtime::{
    Error, ErrorMessage, Result,
    client::{Cluster, Permit, Seed, apply::FieldManager},
    error::Explain as _,
};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::{Outcome, status};

pub use runtime::client::Credentials;

/// Maximum attempts for a status write that conflicts with concurrent writers.
const MOST_TRIES: usize = 5;

/// The object, the context of the shoot and the seed.
pub struct Context<K> {
    /// The seed that holds the object. The seed's clients are already fenced by the permit for this object.
    pub seed: Seed,
    /// The field manager of writes.
    pub manager: FieldManager,
    /// The object, as read at the begin of the operation.
    pub object: Arc<K>,
    /// The Cluster of the shoot. `None` for objects without a shoot, and when the shoot is being removed.
    pub cluster: Option<ClusterObject>,
}

impl<K: ExtensionObject> Context<K> {
    /// The object's name.
    #[must_use]
    pub fn name(&self) -> String {
        self.object.name_any()
    }

    /// The permit to act on this object: the permit of the process's lock and, for outside systems, the
    /// permit of the shoot. Every request that does not use [`Context::seed`] must go through this permit:
    /// requests to the cloud, to DNS, to an object store.
    #[must_use]
    pub fn permit(&self) -> &Permit {
        self.seed.permit()
    }

    /// The object's namespace: the shoot's technical id.
    pub fn namespace(&self) -> Result<String> {
        self.object
            .namespace()
            .ok_or_else(|| Error::bug(format!("{} has no namespace", K::kind(&()))))
    }

    /// Whether the shoot is hibernated or is about to be: the shoot has no machines, and the API need not
    /// answer. The actuator then waits for no object in the shoot.
    #[must_use]
    pub fn is_hibernated(&self) -> bool {
        let shoot = self.cluster.as_ref().map(|cluster| &cluster.spec.shoot.0);
        let enabled = shoot.and_then(|shoot| shoot.pointer("/spec/hibernation/enabled"));
        enabled.and_then(serde_json::Value::as_bool) == Some(true)
    }

    /// The ID of the zone that the shoot isolates while a failover is under way or done. A refused failover
    /// isolates no zone.
    #[must_use]
    pub fn isolated_zone_id(&self) -> Option<&str> {
        let shoot = &self.cluster.as_ref()?.spec.shoot.0;
        let zone = shoot.pointer("/status/zoneIsolation")?;
        let field = |name: &str| zone.get(name).and_then(serde_json::Value::as_str);
        let is_left =
            field("phase") == Some("Failover") && matches!(field("status"), Some("InProgress" | "Done"));
        field("isolatedZoneID").filter(|_| is_left)
    }

    /// Whether the shoot is being deleted, so that no resource of the shoot is needed any more.
    #[must_use]
    pub fn is_being_deleted(&self) -> bool {
        let shoot = self.cluster.as_ref().map(|cluster| &cluster.spec.shoot.0);
        let since = shoot.and_then(|shoot| shoot.pointer("/metadata/deletionTimestamp"));
        since.is_some_and(|since| !since.is_null())
    }

    /// The ownership epoch of the shoot; `None` without a Cluster.
    pub fn epoch(&self) -> Result<Option<i64>> {
        self.cluster.as_ref().map(owner_checks::epoch).transpose()
    }

    /// Writes the ownership epoch as an annotation to a further object of the shoot. The annotation is only
    /// information for people.
    pub(crate) fn tell_epoch<T: ResourceExt>(&self, object: &mut T) -> Result<()> {
        if let Some(epoch) = self.epoch()? {
            let annotations = object.annotations_mut();
            annotations.insert(WRITTEN_IN_EPOCH.to_owned(), epoch.to_string());
        }
        Ok(())
    }

    /// The provider's configuration of the object, or the default.
    pub fn provider_config<T: DeserializeOwned + Default>(&self) -> Result<T> {
        let config = self.object.default_spec().provider_config.as_ref();
        let config = config.filter(|config| !config.is_null());
        understood(config.map(PackedExtension::decode), "spec.providerConfig").map(Option::unwrap_or_default)
    }

    /// The state that an earlier reconciliation, in this or an earlier seed, has written (RX-31).
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
        Ok(Credentials::new(format!("{namespace}/{name}"), data))
    }
}

impl<K: ExtensionObject + Resource<Scope = NamespaceResourceScope>> Context<K> {
    /// Writes part of the outcome into the object's status during the operation; returns when the API server
    /// has stored the write. For data that must survive any crash: the state before the first change (RX-11).
    /// The final outcome of the operation replaces this write.
    ///
    /// # Errors
    /// The object was recreated, or concurrent writers keep conflicting: [`Error::Transient`].
    pub async fn keep(&self, outcome: &Outcome) -> Result<()> {
        let api: Api<K> = self.seed.namespaced(&self.namespace()?);
        let (kind, name) = (K::kind(&()), self.name());
        for _ in 0..MOST_TRIES {
            let found = api.get_opt(&name).await;
            let found = found.context(format_args!("could not read {kind} {name}"))?;
            let Some(object) = found.filter(|object| object.uid() == self.object.uid()) else {
                break;
            };
            let patch = status::interim(&object, outcome);
            if patch == json!({}) {
                return Ok(());
            }
            let written = self.manager.try_merge_status_of(&api, &object, &patch).await?;
            if written.is_some() {
                return Ok(());
            }
        }
        Err(Error::transient(format!(
            "the status of {kind} {name} could not be written: the object has changed again and again, or is another one by now"
        )))
    }
}

fn decode<T: DeserializeOwned>(raw: Option<&RawExtension>, field: &str) -> Result<Option<T>> {
    let raw = raw.filter(|raw| !raw.0.is_null());
    understood(raw.map(RawExtension::decode), field)
}

fn understood<T>(decoded: Option<serde_json::Result<T>>, field: &str) -> Result<Option<T>> {
    decoded.transpose().map_err(|error| {
        Error::config(
            ErrorCode::ErrConfigurationProblem,
            ErrorMessage::with_source(
                format!("{field} cannot be understood: {error}; correct it"),
                error,
            ),
        )
    })
}
