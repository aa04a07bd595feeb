//! The objects of an installed chart in the seed: a namespace, and a ManagedResource of class `seed`.

use std::time::Duration;

use api::{
    constants::{GARDEN_NAMESPACE, REGISTRATION_NAME, ROLE},
    meta::ErrorCode,
    resources::ManagedResource,
};
use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, ResourceExt};
use runtime::{
    Error, Result,
    client::{Cluster, Seed, apply, wait},
    error::Explain,
    workload::manifests::{self, Manifests},
};
use serde_json::Value;

use super::chart::namespace_of;
use crate::MANAGER;

/// Limit for the deletion of the objects, and then of the namespace. A longer deletion is retried.
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// The extension of a registration in the seed. The ManagedResource, the namespace and the release share a
/// name.
pub(super) struct Release<'a> {
    pub(super) seed: &'a Seed,
    pub(super) registration: &'a str,
}

impl Release<'_> {
    /// The name of the ManagedResource.
    pub(super) fn resource_name(registration: &str) -> String {
        format!("extension-{registration}")
    }

    pub(super) async fn resource(&self) -> Result<Option<ManagedResource>> {
        let name = Self::resource_name(self.registration);
        let api: Api<ManagedResource> = self.seed.namespaced(GARDEN_NAMESPACE);
        let read = api.get_opt(&name).await;
        read.context(format_args!(
            "could not read ManagedResource {GARDEN_NAMESPACE}/{name}"
        ))
    }

    /// Writes the objects, and returns the checksum under which the resource-manager reports these objects.
    pub(super) async fn deploy(&self, namespace: &str, objects: &[Value]) -> Result<String> {
        self.ensure(namespace).await?;
        let manifests = Manifests::new(Self::resource_name(self.registration), objects).in_seed();
        manifests.deploy(MANAGER, self.seed, GARDEN_NAMESPACE).await?;
        Ok(manifests.checksum())
    }

    /// Whether the seed has the namespace, and the ManagedResource with the content of this checksum.
    /// Otherwise a part of the release is lost, and only a further write restores the part. Whether the
    /// objects are applied does not count: a chart with random content differs in each rendering, and would
    /// never be applied.
    pub(super) async fn is_current(&self, namespace: &str, checksum: &str) -> Result<bool> {
        let namespaces: Api<Namespace> = self.seed.cluster_wide();
        let found = namespaces.get_opt(namespace).await;
        let found = found.context(format_args!("could not read Namespace {namespace}"))?;
        let name = Self::resource_name(self.registration);
        Ok(found.is_some_and(|found| is_usable(&found, self.registration))
            && manifests::is_written_in_seed(self.seed, GARDEN_NAMESPACE, &name, checksum).await?)
    }

    /// A namespace that existed before has a different owner. Objects of that owner would count as objects of
    /// the chart, and would be deleted with the chart.
    async fn ensure(&self, name: &str) -> Result<()> {
        let api: Api<Namespace> = self.seed.cluster_wide();
        let there = api.get_opt(name).await;
        let there = there.context(format_args!("could not read Namespace {name}"))?;
        if there
            .as_ref()
            .is_some_and(|there| there.metadata.deletion_timestamp.is_some())
        {
            let again = Duration::from_secs(5);
            return Err(Error::not_ready(
                again,
                format!("Namespace {name} is being deleted"),
            ));
        }
        if there.is_some_and(|there| !is_own(&there, self.registration)) {
            return Err(Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "Namespace {name} was not made for ControllerRegistration {registration}: uninstall what is in it and delete it, or give it away by the label {REGISTRATION_NAME}={registration}",
                    registration = self.registration
                ),
            ));
        }
        let labels = [(ROLE, "extension"), (REGISTRATION_NAME, self.registration)];
        let namespace = Namespace {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some(
                    labels
                        .map(|(key, value)| (key.to_owned(), value.to_owned()))
                        .into(),
                ),
                ..ObjectMeta::default()
            },
            ..Namespace::default()
        };
        MANAGER.apply(&api, &namespace).await.map(drop)
    }

    /// Removes the objects and waits until the objects are gone. The namespace stays.
    pub(super) async fn withdraw(&self) -> Result<()> {
        let name = Self::resource_name(self.registration);
        manifests::remove(MANAGER, self.seed, GARDEN_NAMESPACE, &name, false, GONE_WITHIN).await
    }

    /// Removes the objects, and then the namespace.
    pub(super) async fn remove(&self) -> Result<()> {
        self.withdraw().await?;
        let Ok(name) = namespace_of(self.registration) else {
            return Ok(());
        };
        let api: Api<Namespace> = self.seed.cluster_wide();
        let there = api.get_opt(&name).await;
        let there = there.context(format_args!("could not read Namespace {name}"))?;
        if there.is_some_and(|there| is_own(&there, self.registration)) {
            apply::delete(&api, &name).await?;
            wait::until_gone(&api, &name, GONE_WITHIN).await?;
        }
        Ok(())
    }
}

/// Whether the namespace was made for this registration.
fn is_own(namespace: &Namespace, registration: &str) -> bool {
    let owner = namespace.labels().get(REGISTRATION_NAME);
    owner.is_some_and(|owner| owner == registration)
}

/// Whether the namespace was made for this registration, and stays. The namespace is no object of the
/// ManagedResource.
fn is_usable(namespace: &Namespace, registration: &str) -> bool {
    namespace.metadata.deletion_timestamp.is_none() && is_own(namespace, registration)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn namespace(labels: &Value, deleted: Option<&str>) -> Namespace {
        let metadata = json!({"name": "extension-a", "labels": labels, "deletionTimestamp": deleted});
        serde_json::from_value(json!({"metadata": metadata})).unwrap()
    }

    /// A user deletes the namespace. The inputs of the chart stay the same.
    #[test]
    fn a_release_without_a_namespace_of_its_own_is_written_again() {
        let own = json!({REGISTRATION_NAME: "a"});
        assert!(is_usable(&namespace(&own, None), "a"));
        let going = namespace(&own, Some("2026-01-01T00:00:00Z"));
        assert!(!is_usable(&going, "a"), "the namespace is deleted");
        assert!(!is_usable(&namespace(&json!({}), None), "a"), "without the label");
    }
}
