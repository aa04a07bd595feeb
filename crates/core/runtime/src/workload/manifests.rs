//! Objects that the resource-manager keeps in a shoot or in the seed: a ManagedResource with a Secret, in a
//! namespace of the seed.
//!
//! The writer can tell when exactly these objects are applied: the ManagedResource's status holds the
//! checksum of the applied content.

use std::time::Duration;

use api::{
    meta::{ConditionStatus, LocalObjectReference},
    resources::{ManagedResource, ManagedResourceSpec},
};
use k8s_openapi::{ByteString, api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::{
    Error, Result,
    client::{
        Cluster, Seed,
        apply::{self, FieldManager},
        wait::{self, WaitState},
    },
    error::Explain,
    workload::rollout::checksum,
};

/// The condition for applied objects.
const APPLIED: &str = "ResourcesApplied";

/// The class of ManagedResources whose objects go into the seed.
pub const SEED_CLASS: &str = "seed";

/// The label of a ManagedResource that names the creator.
pub const ORIGIN: &str = "origin";

/// Objects of a shoot, or of the seed, under one name.
pub struct Manifests {
    name: String,
    class: Option<String>,
    origin: Option<&'static str>,
    text: String,
}

impl Manifests {
    /// Takes objects with `apiVersion`, `kind` and `metadata.name`. `name` is the name of the
    /// ManagedResource.
    #[must_use]
    pub fn new(name: impl Into<String>, objects: &[Value]) -> Self {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
        Self {
            name: name.into(),
            class: None,
            origin: None,
            text: format!("{list:#}\n"),
        }
    }

    /// The same objects, but for the seed.
    #[must_use]
    pub fn in_seed(self) -> Self {
        Self {
            class: Some(SEED_CLASS.to_owned()),
            ..self
        }
    }

    /// Sets the label `origin`, by which the controller of a namespace recognizes the ManagedResources of
    /// that controller.
    #[must_use]
    pub fn of_origin(self, origin: &'static str) -> Self {
        Self {
            origin: Some(origin),
            ..self
        }
    }

    /// How much is written into the Secret.
    #[must_use]
    pub fn size(&self) -> usize {
        self.text.len()
    }

    /// Writes the Secret and the ManagedResource. Objects that are no longer in the list are deleted
    /// (`keepObjects: false`).
    ///
    /// # Errors
    /// The seed refuses the write.
    pub async fn deploy(&self, manager: FieldManager, seed: &Seed, namespace: &str) -> Result<()> {
        manager
            .apply_secret(&seed.namespaced(namespace), &self.secret())
            .await?;
        let mut resource = ManagedResource::new(
            &self.name,
            ManagedResourceSpec {
                class: self.class.clone(),
                secret_refs: vec![LocalObjectReference {
                    name: secret_name(&self.name),
                }],
                keep_objects: Some(false),
                ..ManagedResourceSpec::default()
            },
        );
        if let Some(origin) = self.origin {
            resource.labels_mut().insert(ORIGIN.to_owned(), origin.to_owned());
        }
        manager
            .apply(&seed.namespaced(namespace), &resource)
            .await
            .map(drop)
    }

    /// Waits until exactly these objects are applied. The wait does not cover their health: a shoot may have
    /// no node yet.
    ///
    /// # Errors
    /// The part that is still awaited after `within`.
    pub async fn applied(&self, seed: &Seed, namespace: &str, within: Duration) -> Result<()> {
        let wanted = self.checksum();
        let api: Api<ManagedResource> = seed.namespaced(namespace);
        wait::until(&api, &self.name, within, |resource| check(resource, &wanted))
            .await
            .map(drop)
    }

    /// The checksum as the resource-manager computes the checksum: equal to `status.secretsDataChecksum` once
    /// the resource-manager has acted on exactly these objects.
    #[must_use]
    pub fn checksum(&self) -> String {
        checksum([(
            format!("{}/{}", secret_name(&self.name), key(&self.name)),
            &self.text,
        )])
    }

    fn secret(&self) -> Secret {
        Secret {
            metadata: ObjectMeta {
                name: Some(secret_name(&self.name)),
                ..ObjectMeta::default()
            },
            type_: Some("Opaque".to_owned()),
            data: Some([(key(&self.name), ByteString(self.text.clone().into_bytes()))].into()),
            ..Secret::default()
        }
    }
}

/// Deletes a ManagedResource and the Secret of the manifests, and waits until the ManagedResource is gone.
/// With `keep`, the objects stay in the shoot (RX-23); `keepObjects` is written before the deletion.
///
/// # Errors
/// The part that is still awaited after `within`.
pub async fn remove(
    manager: FieldManager,
    seed: &Seed,
    namespace: &str,
    name: &str,
    keep: bool,
    within: Duration,
) -> Result<()> {
    let resources: Api<ManagedResource> = seed.namespaced(namespace);
    let found = resources.get_opt(name).await;
    let found = found.context(format_args!("could not read the ManagedResource {name}"))?;
    if let Some(found) = found {
        if found.spec.keep_objects != Some(keep) {
            let body = json!({"spec": {"keepObjects": keep}});
            manager.merge(&resources, name, &body).await?;
        }
        apply::delete(&resources, name).await?;
        wait::until_gone(&resources, name, within).await?;
    }
    // Not earlier: the Secret is the only list of the objects.
    let secrets: Api<Secret> = seed.namespaced(namespace);
    apply::delete(&secrets, &secret_name(name)).await
}

/// Whether the Secret of the manifests has the content with this checksum, and the ManagedResource of the
/// seed names the Secret. Not whether the objects are applied.
///
/// # Errors
/// The seed cannot be read.
pub async fn is_written_in_seed(seed: &Seed, namespace: &str, name: &str, checksum: &str) -> Result<bool> {
    let secrets: Api<Secret> = seed.namespaced(namespace);
    let secret = secrets.get_opt(&secret_name(name)).await;
    let secret = secret.context(format_args!("could not read the Secret {}", secret_name(name)))?;
    let resources: Api<ManagedResource> = seed.namespaced(namespace);
    let resource = resources.get_opt(name).await;
    let resource = resource.context(format_args!("could not read the ManagedResource {name}"))?;
    Ok(is_complete_in_seed(
        name,
        secret.as_ref(),
        resource.as_ref(),
        checksum,
    ))
}

fn is_complete_in_seed(
    name: &str,
    secret: Option<&Secret>,
    resource: Option<&ManagedResource>,
    wanted: &str,
) -> bool {
    let secret_name = secret_name(name);
    let has_content = |secret: &Secret| {
        let data = secret.data.iter().flatten();
        checksum(data.map(|(key, value)| (format!("{secret_name}/{key}"), &value.0))) == wanted
    };
    let names_secret = |resource: &ManagedResource| {
        let spec = &resource.spec;
        resource.metadata.deletion_timestamp.is_none()
            && spec.class.as_deref() == Some(SEED_CLASS)
            && spec
                .secret_refs
                .iter()
                .map(|secret| &secret.name)
                .eq([&secret_name])
    };
    secret.is_some_and(has_content) && resource.is_some_and(names_secret)
}

/// The name of the Secret that holds the manifests of the ManagedResource of this name.
#[must_use]
pub fn secret_name(name: &str) -> String {
    format!("managedresource-{name}")
}

fn key(name: &str) -> String {
    format!("{name}.yaml")
}

fn check(resource: Option<&ManagedResource>, wanted: &str) -> WaitState {
    let Some(resource) = resource else {
        return WaitState::Fail(Error::transient("the ManagedResource is gone again"));
    };
    let status = resource.status.clone().unwrap_or_default();
    let generation = resource.metadata.generation;
    if status.observed_generation != generation || status.secrets_data_checksum.as_deref() != Some(wanted) {
        return WaitState::Wait("the resource-manager has not acted on it yet".to_owned());
    }
    match status
        .conditions
        .iter()
        .find(|condition| condition.type_ == APPLIED)
    {
        Some(condition) if condition.status == ConditionStatus::True => WaitState::Done,
        Some(condition) => WaitState::Wait(condition.message.clone()),
        None => WaitState::Wait(format!("it has no condition {APPLIED} yet")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn manifests(object: &str) -> Manifests {
        Manifests::new("m", &[json!({"kind": object})])
    }

    fn resource(observed: i64, checksum: &str, applied: &str) -> ManagedResource {
        let time = "2026-01-01T00:00:00Z";
        serde_json::from_value(json!({
            "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "metadata": {"name": "m", "generation": 2},
            "spec": {"secretRefs": [{"name": "managedresource-m"}]},
            "status": {"observedGeneration": observed, "secretsDataChecksum": checksum, "conditions": [{
                "type": APPLIED, "status": applied, "reason": "R", "message": "said so", "lastTransitionTime": time,
                "lastUpdateTime": time,
            }]},
        }))
        .unwrap()
    }

    #[test]
    fn only_exactly_these_objects_count_as_applied() {
        let (wanted, other) = (manifests("A").checksum(), manifests("B").checksum());
        assert_ne!(wanted, other);
        let looked =
            |observed, checksum: &str, applied| check(Some(&resource(observed, checksum, applied)), &wanted);
        assert!(matches!(looked(2, &wanted, "True"), WaitState::Done));
        assert!(matches!(looked(1, &wanted, "True"), WaitState::Wait(_)));
        assert!(matches!(looked(2, &other, "True"), WaitState::Wait(_)));
        assert!(matches!(looked(2, &wanted, "False"), WaitState::Wait(why) if why == "said so"));
        assert!(matches!(check(None, &wanted), WaitState::Fail(_)));
    }

    #[test]
    fn manifests_that_lack_a_part_are_not_written() {
        let manifests = manifests("A").in_seed();
        let checksum = manifests.checksum();
        let secret = manifests.secret();
        let resource = |class: Option<&str>, secret: &str| {
            let spec = ManagedResourceSpec {
                class: class.map(str::to_owned),
                secret_refs: vec![LocalObjectReference {
                    name: secret.to_owned(),
                }],
                ..ManagedResourceSpec::default()
            };
            ManagedResource::new("m", spec)
        };
        let whole = resource(Some(SEED_CLASS), "managedresource-m");
        let is_written = |secret: Option<&Secret>, resource: Option<&ManagedResource>| {
            is_complete_in_seed("m", secret, resource, &checksum)
        };
        assert!(is_written(Some(&secret), Some(&whole)));
        assert!(!is_written(None, Some(&whole)), "without the Secret");
        assert!(!is_written(Some(&secret), None), "without the ManagedResource");
        let emptied = Secret::default();
        assert!(!is_written(Some(&emptied), Some(&whole)), "with other content");
        let foreign = resource(None, "managedresource-m");
        assert!(!is_written(Some(&secret), Some(&foreign)), "of the shoot");
        let other = resource(Some(SEED_CLASS), "other");
        assert!(!is_written(Some(&secret), Some(&other)), "with another Secret");
    }

    #[test]
    fn the_secret_holds_all_objects_as_one_list() {
        let secret = manifests("A").secret();
        let text = &secret.data.as_ref().unwrap()["m.yaml"].0;
        let list: Value = serde_json::from_slice(text).unwrap();
        assert_eq!(
            (list["kind"].as_str(), list["items"].as_array().unwrap().len()),
            (Some("List"), 1)
        );
        assert_eq!(secret.metadata.name.as_deref(), Some("managedresource-m"));
    }
}
