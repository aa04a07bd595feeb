//! The Cluster: the copy of the garden's objects for providers on this seed. The Cluster has the name of the
//! shoot's namespace. This module also copies the provider's credentials, which providers need from the
//! garden, too.

use std::time::Duration;

use api::{
    extensions,
    extensions::ClusterSpec,
    gardencore::{Seed, Shoot, shoot::ShootAdvertisedAddress},
    meta::RawExtension,
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Resource, ResourceExt};
use placement::{Names, Operation};
use runtime::{
    Error, Result,
    client::{Cluster as _, apply, wait},
    error::Explain,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    FIELD_MANAGER, Facts, Residency, configuration_problem,
    ownership::owner_record,
    secrets::config::CLOUD_PROVIDER_SECRET,
    task::{NONE, PartTask},
};

/// Upper bound of the deletion: no controller holds a finalizer on the Cluster.
const GOES_WITHIN: Duration = Duration::from_secs(30);

/// The Cluster.
#[derive(Debug)]
pub struct Cluster;

impl Cluster {
    /// "Syncing Cluster resource": writes the present state of the garden's objects.
    pub async fn sync(f: &Facts) -> Result<()> {
        let may_be_asked = !f.operation.deletes()
            || !f.seed_object.spec.checks_owners()
            || owner_record::exists(&f.residency).await?;
        let cluster = extensions::Cluster::new(
            &f.residency.namespace,
            ClusterSpec {
                cloud_profile: raw(&f.cloud_profile)?,
                seed: Some(raw(&seed_for_providers(&f.seed_object, may_be_asked))?),
                shoot: raw(&shoot_for_providers(&f.shoot, &f.names, f.operation))?,
            },
        );
        FIELD_MANAGER
            .apply(&f.residency.seed.cluster_wide(), &cluster)
            .await
            .map(|_| ())
    }

    /// "Deleting Cluster resource", and waits until the Cluster is gone. Must be the last deletion, because
    /// providers need the Cluster for the deletion of extension objects.
    pub async fn destroy(residency: &Residency) -> Result<()> {
        let clusters = residency.seed.cluster_wide::<extensions::Cluster>();
        apply::delete(&clusters, &residency.namespace).await?;
        wait::until_gone(&clusters, &residency.namespace, GOES_WITHIN).await
    }

    /// "Telling the providers that the shoot has left": providers derive their rights from the Shoot in the
    /// Cluster. Without a Cluster there is no provider to notify.
    pub async fn update_shoot(residency: &Residency, shoot: &Shoot) -> Result<()> {
        let api = residency.seed.cluster_wide::<extensions::Cluster>();
        let found = api.get_opt(&residency.namespace).await;
        let Some(found) = found.context("could not read the Cluster")? else {
            return Ok(());
        };
        let mut updated = extensions::Cluster::new(&residency.namespace, found.spec);
        updated.spec.shoot = raw(shoot)?;
        FIELD_MANAGER.apply(&api, &updated).await.map(|_| ())
    }
}

/// The provider's credentials, in the shoot's namespace.
#[derive(Debug)]
pub struct CloudProviderSecret;

impl CloudProviderSecret {
    /// [`Self::deploy`], as a task.
    pub const DEPLOY: PartTask<Facts> =
        PartTask::new("Deploying cloud provider account secret", NONE, |input| {
            Box::pin(Self::deploy(input))
        });

    /// "Deploying cloud provider account secret": copies the Secret from the garden.
    pub async fn deploy(f: &Facts) -> Result<()> {
        let Some(source) = f.cloud_credentials().await? else {
            return Ok(());
        };
        let mut copy = f.copy_of(CLOUD_PROVIDER_SECRET, &source);
        copy.metadata.labels = Some(
            [(
                api::constants::PURPOSE.to_owned(),
                CLOUD_PROVIDER_SECRET.to_owned(),
            )]
            .into(),
        );
        let api: Api<Secret> = f.residency.seed.namespaced(&f.residency.namespace);
        FIELD_MANAGER.apply_secret(&api, &copy).await.map(|_| ())
    }
}

impl Facts {
    /// The content of a garden's Secret as a Secret of the shoot's namespace.
    pub(crate) fn copy_of(&self, name: &str, source: &Secret) -> Secret {
        let mut copy = Secret {
            data: source.data.clone(),
            type_: Some("Opaque".into()),
            ..Secret::default()
        };
        copy.metadata.name = Some(name.to_owned());
        copy.metadata.namespace = Some(self.residency.namespace.clone());
        copy
    }

    /// Copies a Secret of the garden under a name into the shoot's namespace.
    pub(crate) async fn copy_garden_secret(&self, namespace: &str, from: &str, to: &str) -> Result<()> {
        let source = self.garden_secret(namespace, from).await?;
        if source
            .data
            .as_ref()
            .is_none_or(std::collections::BTreeMap::is_empty)
        {
            return Err(configuration_problem(format!(
                "Secret {namespace}/{from} in the garden is empty: fill it"
            )));
        }
        let api: Api<Secret> = self.residency.seed.namespaced(&self.residency.namespace);
        FIELD_MANAGER
            .apply_secret(&api, &self.copy_of(to, &source))
            .await
            .context(format_args!("could not copy {from}"))?;
        Ok(())
    }
}

/// The Seed for providers. A deletion writes no owner record. When no owner record was ever written, no
/// provider could confirm the owner, and the shoot could not be deleted. So owner checks are off in this
/// case.
fn seed_for_providers(seed: &Seed, may_be_asked: bool) -> Seed {
    let mut told = seed.clone();
    if let Some(settings) = told.spec.settings.as_mut().filter(|_| !may_be_asked) {
        settings.owner_checks = None;
    }
    told
}

/// The Shoot for providers. A shoot in deletion counts as awake, because controllers in the shoot release the
/// shoot's resources outside.
fn shoot_for_providers(shoot: &Shoot, names: &Names, operation: Operation) -> Shoot {
    let mut told = with_addresses(shoot, names);
    if let Some(hibernation) = told.spec.hibernation.as_mut().filter(|_| operation.deletes()) {
        hibernation.enabled = Some(false);
    }
    told
}

/// The Shoot with the addresses of the shoot's API: providers pass these addresses to their components in the
/// shoot. The addresses are derived from names, so the addresses are the same on every seed.
fn with_addresses(shoot: &Shoot, names: &Names) -> Shoot {
    let mut told = shoot.clone();
    let hosts = [
        ("internal", &names.internal_api),
        ("external", &names.external_api),
    ];
    told.status.get_or_insert_default().advertised_addresses = hosts
        .into_iter()
        .filter_map(|(name, host)| {
            Some(ShootAdvertisedAddress {
                name: name.to_owned(),
                url: format!("https://{}", host.as_ref()?),
                ..ShootAdvertisedAddress::default()
            })
        })
        .collect();
    told
}

/// The object with `apiVersion` and `kind`, and without `managedFields`.
fn raw<K: Resource<DynamicType = ()> + Serialize>(object: &K) -> Result<RawExtension> {
    let mut value = serde_json::to_value(object).map_err(|e| {
        Error::bug(format!(
            "{} {} cannot be encoded",
            K::kind(&()),
            object.name_any()
        ))
        .caused_by(e)
    })?;
    value["apiVersion"] = json!(K::api_version(&()));
    value["kind"] = json!(K::kind(&()));
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    Ok(RawExtension(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names_in_tests;

    #[test]
    fn providers_are_told_where_the_api_is() {
        let told = with_addresses(&Shoot::default(), &names_in_tests("100.96.0.0/11"));
        let addresses = told.status.unwrap_or_default().advertised_addresses;
        let addresses: Vec<_> = addresses
            .iter()
            .map(|a| (a.name.as_str(), a.url.as_str()))
            .collect();
        assert_eq!(
            addresses,
            [
                ("internal", "https://api.web.dev.internal.example.test"),
                ("external", "https://api.web.example.test"),
            ]
        );
    }

    /// Owner checks that were enabled after the last reconciliation of the shoot must not block the deletion
    /// for ever.
    #[test]
    fn nobody_asks_for_an_owner_record_that_nobody_writes() {
        let mut seed = Seed::default();
        seed.spec.settings = Some(api::gardencore::seed::SeedSettings {
            owner_checks: Some(api::gardencore::seed::OwnerChecks {
                enabled: true,
                ..Default::default()
            }),
            ..Default::default()
        });
        assert_eq!(seed_for_providers(&seed, true), seed);
        assert!(!seed_for_providers(&seed, false).spec.checks_owners());
    }

    #[test]
    fn a_shoot_that_sleeps_is_awake_for_its_deletion() {
        let mut shoot = Shoot::default();
        shoot.spec.hibernation = Some(api::gardencore::shoot::Hibernation {
            enabled: Some(true),
            ..Default::default()
        });
        for (operation, enabled) in [
            (Operation::Reconcile, true),
            (Operation::Restore, true),
            (Operation::Migrate, true),
            (Operation::Delete, false),
            (Operation::ForceDelete, false),
        ] {
            let told = shoot_for_providers(&shoot, &names_in_tests("100.96.0.0/11"), operation);
            assert_eq!(
                told.spec.hibernation.and_then(|hibernation| hibernation.enabled),
                Some(enabled),
                "{operation:?}"
            );
        }
    }
}
