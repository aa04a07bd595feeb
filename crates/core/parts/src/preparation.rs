//! The preparation of a seed for a shoot that a different seed serves.
//!
//! The namespace gets a mark in the same write that creates the namespace, and no existing namespace gets the
//! mark. The flow of an owner removes the mark before all further steps. So a marked namespace has no control
//! plane, independent of the garden: a garden that was restored from an old backup cannot cause the removal
//! of a control plane.

use std::sync::Arc;

use api::{
    constants::PREPARED_IN_EPOCH,
    druid::Etcd,
    gardencore::{Project, Seed as SeedObject, Shoot, shoot::MigrationPreparation},
};
use k8s_openapi::api::core::v1;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Preconditions},
};
use ownership::{NamespaceMark, PreparationStep, next_preparation_step};
use placement::names;
use runtime::{
    Error, Result,
    client::{Cluster, Garden, Seed},
    error::Explain,
};

use crate::{
    Settings, configuration_problem,
    facts::{project_of, tenant},
    namespace::{Namespace, create, of_shoot},
    residency::{Residency, prepared_in},
    task::{NONE, PartTask},
};

/// The facts of a preparation, in the destination and in the source. Of the state of the shoot, the
/// destination reads one object alone ([`crate::PreparationState`]), and no credential.
#[derive(Clone, Debug)]
pub struct PreparationFacts {
    /// The garden.
    pub garden: Garden,
    /// The namespace of the shoot in this seed.
    pub residency: Residency,
    /// The shoot at the begin of the flow.
    pub shoot: Arc<Shoot>,
    /// Project of the shoot.
    pub project: Project,
    /// The Seed of this gardenlet, in the garden.
    pub seed_object: SeedObject,
    /// The grant for the destination.
    pub granted: MigrationPreparation,
}

impl PreparationFacts {
    /// Reads the facts for a grant. `seed_name`: the destination or the source.
    pub async fn new(
        garden: &Garden,
        seed: Seed,
        settings: Arc<Settings>,
        seed_name: &str,
        shoot: Arc<Shoot>,
        granted: MigrationPreparation,
    ) -> Result<Self> {
        let namespace = names::recorded_technical_id(&shoot)
            .map(str::to_owned)
            .ok_or_else(|| {
                Error::transient("the host of the shoot has not recorded status.technicalID yet")
            })?;
        let project = project_of(garden, &shoot).await?;
        let seed_object = garden
            .cluster_wide::<SeedObject>()
            .get_opt(seed_name)
            .await
            .context(format_args!("could not read Seed {seed_name}"))?
            .ok_or_else(|| configuration_problem(format!("there is no Seed {seed_name} in the garden")))?;
        Ok(Self {
            garden: garden.clone(),
            residency: Residency {
                seed,
                settings,
                namespace,
                tenant: tenant(&shoot),
            },
            shoot,
            project,
            seed_object,
            granted,
        })
    }
}

impl Namespace {
    /// [`Self::prepare`], as a task.
    pub const PREPARE: PartTask<PreparationFacts> =
        PartTask::new("Preparing Shoot namespace in Seed", NONE, |input| {
            Box::pin(Self::prepare(input))
        });

    /// "Preparing Shoot namespace in Seed". Creates the namespace with the mark. A namespace without the mark
    /// of this epoch is an error, and stays as is.
    pub async fn prepare(p: &PreparationFacts) -> Result<()> {
        let name = &p.residency.namespace;
        let found = p.residency.read_namespace().await?;
        let is_going = |found: &v1::Namespace| found.metadata.deletion_timestamp.is_some();
        if found.as_ref().is_some_and(is_going) {
            return Err(Error::transient(format!(
                "namespace {name} is still being deleted from an earlier residency or preparation of the shoot in this seed"
            )));
        }
        let mark = found.as_ref().map_or(NamespaceMark::Absent, |found| {
            prepared_in(found).map_or(NamespaceMark::Unmarked, NamespaceMark::PreparedIn)
        });
        match next_preparation_step(mark, p.granted.epoch) {
            PreparationStep::Create => {
                let mut wanted = of_shoot(&p.shoot, &p.project, &p.seed_object, name)?;
                let annotations = wanted.annotations_mut();
                annotations.insert(PREPARED_IN_EPOCH.to_owned(), p.granted.epoch.to_string());
                create(&p.residency.seed.cluster_wide(), &wanted).await
            }
            PreparationStep::Keep => Ok(()),
            PreparationStep::Wait => Err(Error::transient(format!(
                "namespace {name} was prepared under a grant of a different epoch, and is removed before a preparation in epoch {}",
                p.granted.epoch
            ))),
            PreparationStep::Refuse => Err(configuration_problem(format!(
                "namespace {name} exists in this seed and was not prepared: clean up the earlier control plane of the shoot in this \
                 seed (Event ShootElsewhere of the namespace)"
            ))),
        }
    }

    /// Removes exactly this prepared namespace, as read: a flow of an owner that removes the mark at the same
    /// moment comes first. A namespace with an Etcd stays. `false` after a concurrent change.
    pub async fn remove_prepared(residency: &Residency, namespace: &v1::Namespace) -> Result<bool> {
        let name = namespace.name_any();
        if prepared_in(namespace).is_none() {
            return Err(Error::bug(format!("namespace {name} was not prepared")));
        }
        let etcds: Api<Etcd> = residency.seed.namespaced(&name);
        let found = etcds.list_metadata(&ListParams::default().limit(1)).await;
        let found = found.context(format_args!("could not list Etcds in namespace {name}"))?;
        if !found.items.is_empty() {
            return Err(configuration_problem(format!(
                "namespace {name} has the mark of a preparation ({PREPARED_IN_EPOCH}) and an Etcd: no object is changed. If the shoot \
                 runs in this seed, remove the mark; otherwise remove the Etcd"
            )));
        }
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: namespace.uid(),
                resource_version: namespace.resource_version(),
            }),
            ..DeleteParams::default()
        };
        let namespaces: Api<v1::Namespace> = residency.seed.cluster_wide();
        match namespaces.delete(&name, &params).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(true),
            Err(kube::Error::Api(status)) if status.is_conflict() => Ok(false),
            Err(error) => Err(error).context(format_args!("could not delete namespace {name}")),
        }
    }
}
