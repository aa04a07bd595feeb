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

use super::{chart::namespace_of, conditions};
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

    /// Whether the seed has the namespace, and the resource-manager reports the objects with this checksum as
    /// applied. Otherwise a part of the release may be lost, and only a further write restores the part.
    pub(super) async fn is_current(&self, namespace: &str, checksum: &str) -> Result<bool> {
        let namespaces: Api<Namespace> = self.seed.cluster_wide();
        let found = namespaces.get_opt(namespace).await;
        let found = found.context(format_args!("could not read Namespace {namespace}"))?;
        let resource = self.resource().await?;
        Ok(is_complete(
            self.registration,
            found.as_ref(),
            resource.as_ref(),
            checksum,
        ))
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

/// Whether the namespace and the objects with this checksum are complete. The namespace is no object of the
/// ManagedResource.
fn is_complete(
    registration: &str,
    namespace: Option<&Namespace>,
    resource: Option<&ManagedResource>,
    checksum: &str,
) -> bool {
    let is_usable = |namespace: &Namespace| {
        namespace.metadata.deletion_timestamp.is_none() && is_own(namespace, registration)
    };
    namespace.is_some_and(is_usable) && conditions::is_applied(resource, checksum)
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

    fn resource(applied: &str) -> ManagedResource {
        let time = "2026-01-01T00:00:00Z";
        let applied = json!({"type": "ResourcesApplied", "status": applied, "reason": "R", "message": "m",
            "lastTransitionTime": time, "lastUpdateTime": time});
        serde_json::from_value(json!({
            "apiVersion": "resources.gardener.cloud/v1alpha1", "kind": "ManagedResource",
            "metadata": {"name": "extension-a", "generation": 1}, "spec": {"secretRefs": []},
            "status": {"observedGeneration": 1, "secretsDataChecksum": "c", "conditions": [applied]},
        }))
        .unwrap()
    }

    /// A user or a restore of the seed's etcd takes a part away. The inputs of the chart stay the same.
    #[test]
    fn a_release_that_lacks_a_part_is_written_again() {
        let own = json!({REGISTRATION_NAME: "a"});
        let (kept, applied) = (namespace(&own, None), resource("True"));
        let is_kept = |namespace, resource| is_complete("a", namespace, resource, "c");
        assert!(is_kept(Some(&kept), Some(&applied)));
        assert!(!is_kept(None, Some(&applied)), "without the namespace");
        let going = namespace(&own, Some("2026-01-01T00:00:00Z"));
        assert!(!is_kept(Some(&going), Some(&applied)), "the namespace is deleted");
        let foreign = namespace(&json!({}), None);
        assert!(!is_kept(Some(&foreign), Some(&applied)), "without the label");
        assert!(!is_kept(Some(&kept), None), "without the ManagedResource");
        let failed = resource("False");
        assert!(!is_kept(Some(&kept), Some(&failed)), "without the Secret");
    }
}
