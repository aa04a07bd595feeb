//! What an installed chart is in the seed: a namespace, and a ManagedResource of class `seed`.

use std::time::Duration;

use api::{
    constants::{GARDEN_NAMESPACE, REGISTRATION_NAME, ROLE},
    meta::ErrorCode,
    resources::ManagedResource,
};
use k8s_openapi::{api::core::v1::Namespace, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, ResourceExt};
use runtime::{
    Cluster, Error, Result, Seed, apply,
    error::Explain,
    manifests::{self, Manifests},
    wait,
};
use serde_json::Value;

use super::chart::namespace_of;
use crate::MANAGER;

/// For objects to go, and then for their namespace. What takes longer is tried again.
const GONE_WITHIN: Duration = Duration::from_secs(60);

/// A provider of this registration in the seed. Its ManagedResource, its namespace and the release have one
/// name each.
pub(super) struct Release<'a> {
    pub(super) seed: &'a Seed,
    pub(super) registration: &'a str,
}

impl Release<'_> {
    /// The name of its ManagedResource.
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

    /// Writes objects, and tells what the resource-manager calls exactly these.
    pub(super) async fn deploy(&self, namespace: &str, objects: &[Value]) -> Result<String> {
        self.ensure(namespace).await?;
        let manifests = Manifests::new(Self::resource_name(self.registration), objects).in_seed();
        manifests.deploy(MANAGER, self.seed, GARDEN_NAMESPACE).await?;
        Ok(manifests.checksum())
    }

    /// A namespace that was there before is somebody else's: what is installed there would be taken for the
    /// chart's own, and would go with it.
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
        if there.is_some_and(|there| !self.is_own(&there)) {
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

    fn is_own(&self, namespace: &Namespace) -> bool {
        namespace
            .labels()
            .get(REGISTRATION_NAME)
            .is_some_and(|name| name == self.registration)
    }

    /// Takes its objects away and waits until they are gone. Its namespace stays.
    pub(super) async fn withdraw(&self) -> Result<()> {
        let name = Self::resource_name(self.registration);
        manifests::remove(MANAGER, self.seed, GARDEN_NAMESPACE, &name, false, GONE_WITHIN).await
    }

    /// The same, and its namespace after them.
    pub(super) async fn remove(&self) -> Result<()> {
        self.withdraw().await?;
        let Ok(name) = namespace_of(self.registration) else {
            return Ok(());
        };
        let api: Api<Namespace> = self.seed.cluster_wide();
        let there = api.get_opt(&name).await;
        let there = there.context(format_args!("could not read Namespace {name}"))?;
        if there.is_some_and(|there| self.is_own(&there)) {
            apply::delete(&api, &name).await?;
            wait::until_gone(&api, &name, GONE_WITHIN).await?;
        }
        Ok(())
    }
}
