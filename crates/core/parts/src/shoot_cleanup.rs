//! Empties a shoot that is deleted, through the shoot's own API, so that controllers in the shoot release
//! volumes and load balancers. The clean-up has a bound: the error at the bound has a code that allows a
//! forced deletion.
//!
//! The order:
//! 1. webhooks and extended APIs, because these can refuse deletions;
//! 2. custom resources;
//! 3. workloads with volume claims, since Kubernetes keeps a claim while a Pod uses the claim;
//! 4. load balancers and volumes;
//! 5. namespaces with all remaining objects.

use std::{collections::BTreeSet, ops::ControlFlow, time::Duration};

use api::meta::ErrorCode;
use k8s_openapi::{
    api::{
        admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingWebhookConfiguration},
        apps::v1::{DaemonSet, Deployment, ReplicaSet, StatefulSet},
        batch::v1::{CronJob, Job},
        core::v1::{Namespace, PersistentVolume, PersistentVolumeClaim, Pod, ReplicationController, Service},
        networking::v1::Ingress,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube_aggregator::pkg::apis::apiregistration::v1::APIService,
};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, ListParams, PropagationPolicy},
    core::ApiResource,
};
use runtime::{
    Error, Result,
    bounds::some_of,
    client::{Cluster, Shoot, apply::Object},
    error::Explain,
};
use serde::{Deserialize, de::IgnoredAny};

use crate::{
    Facts, ManagedResources,
    extensions::dynamic,
    task::{CLOUD, PartTask},
};

/// Annotation: skips the clean-up. The user knows that no resource outside is lost.
const SKIP: &str = "shoot.gardener.cloud/skip-cleanup";
/// Namespaces that every cluster needs.
const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];
/// Interval between two polls: a watch for each of many kinds would cost more than the watches save. Much
/// shorter than the whole wait.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Upper bound of deletions per kind and poll.
const AT_A_TIME: usize = 1000;
/// Upper bound of names in an error.
const QUOTED: usize = 10;

/// The fields that the clean-up reads of an object of any kind. With the types of Kubernetes, a user's schema
/// could fill the memory.
#[derive(Deserialize)]
struct CleanupObject {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: Option<String>,
    /// RFC 3339 in UTC, in whole seconds: the order of the texts is the order in time.
    creation_timestamp: Option<String>,
    deletion_timestamp: Option<IgnoredAny>,
    #[serde(default)]
    labels: Labels,
    #[serde(default)]
    annotations: Annotations,
}

#[derive(Default, Deserialize)]
struct Labels {
    /// `true`: the clean-up leaves the object alone. Extensions of Gardener inject the label into the objects
    /// of their ManagedResources.
    #[serde(rename = "shoot.gardener.cloud/no-cleanup")]
    no_cleanup: Option<String>,
}

#[derive(Default, Deserialize)]
struct Annotations {
    /// The ManagedResource of the object: [`RESOURCES_ORIGIN`](api::constants::RESOURCES_ORIGIN).
    #[serde(rename = "resources.gardener.cloud/origin")]
    origin: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(rename = "type")]
    type_: Option<String>,
    service: Option<IgnoredAny>,
    /// Of a Pod.
    volumes: Option<Vec<Volume>>,
    /// Of a workload.
    template: Option<Template>,
    /// Of a StatefulSet.
    volume_claim_templates: Option<Vec<IgnoredAny>>,
    /// Of a CronJob.
    job_template: Option<Template>,
}

/// A template of Pods, or a template of Jobs with a template of Pods within.
#[derive(Deserialize)]
struct Template {
    #[serde(default)]
    spec: Box<Spec>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Volume {
    persistent_volume_claim: Option<IgnoredAny>,
    ephemeral: Option<IgnoredAny>,
}

/// The objects that users created in the shoot.
#[derive(Debug)]
pub struct ShootObjects;

impl ShootObjects {
    /// [`Self::clean`], as a task.
    pub const CLEAN: PartTask<Facts> = PartTask::new("Cleaning kubernetes resources", CLOUD, |input| {
        Box::pin(Self::clean(input))
    });

    /// "Cleaning kubernetes resources".
    pub async fn clean(f: &Facts) -> Result<()> {
        if f.shoot
            .annotations()
            .get(SKIP)
            .is_some_and(|value| value == "true")
        {
            return Ok(());
        }
        let origins = ManagedResources::origins_in_shoot(&f.residency).await?;
        let mut cleanup = Cleanup::new(f.residency.shoot_client().await?, origins);
        cleanup.run_within(f.residency.settings.timeouts.cleanup).await
    }
}

/// A step of the order.
#[derive(Clone, Copy, Debug)]
enum Wave {
    Obstacles,
    CustomResources,
    Workloads,
    External,
    Namespaces,
}

/// The objects that block a wave. All selected objects are deleted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Awaits {
    Nothing,
    /// The objects that existed when the wave began. A controller may re-create an object for ever.
    Former,
    All,
}

/// The newest object that existed when a wave began. A timestamp instead of all UIDs, because the number of
/// objects is unbounded.
#[derive(Default)]
struct Begin {
    newest: Option<String>,
    /// A poll has read every list to the end, so that later objects are new.
    is_complete: bool,
}

impl Begin {
    fn includes(&mut self, object: &Metadata) -> bool {
        if self.is_complete {
            return object.creation_timestamp <= self.newest;
        }
        if object.creation_timestamp > self.newest {
            self.newest.clone_from(&object.creation_timestamp);
        }
        true
    }
}

/// The clean-up of one shoot.
struct Cleanup {
    shoot: Shoot,
    /// Origins of the objects that resource-manager re-applies: the gardenlet destroys ManagedResources after
    /// the clean-up.
    origins: BTreeSet<String>,
    /// The objects that block the wave, as of the last poll.
    remains: Vec<String>,
    /// The last DELETE that the shoot's API refused.
    refusal: Option<Error>,
}

impl Cleanup {
    fn new(shoot: Shoot, origins: BTreeSet<String>) -> Self {
        Self {
            shoot,
            origins,
            remains: Vec::new(),
            refusal: None,
        }
    }

    async fn run_within(&mut self, bound: Duration) -> Result<()> {
        if let Ok(outcome) = tokio::time::timeout(bound, self.run()).await {
            return outcome;
        }
        Err(Error::config(
            ErrorCode::ErrCleanupClusterResources,
            sentence(&self.remains, self.refusal.as_ref()),
        ))
    }

    async fn run(&mut self) -> Result<()> {
        for wave in [
            Wave::Obstacles,
            Wave::CustomResources,
            Wave::Workloads,
            Wave::External,
            Wave::Namespaces,
        ] {
            let mut begin = Begin::default();
            loop {
                self.poll(wave, &mut begin).await?;
                if self.remains.is_empty() {
                    break;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
        Ok(())
    }

    /// Requests the deletion of the objects of a wave. Obstacles and workloads may be created again during a
    /// later wave, and would then block that wave.
    async fn poll(&mut self, wave: Wave, begin: &mut Begin) -> Result<()> {
        let mut poll = Poll {
            shoot: &self.shoot,
            origins: &self.origins,
            refusal: &mut self.refusal,
            begin,
            is_refused: false,
            is_cut: false,
            remains: Vec::new(),
        };
        match wave {
            Wave::Obstacles => poll.delete_obstacles(Awaits::Former).await?,
            Wave::CustomResources => {
                poll.delete_obstacles(Awaits::Nothing).await?;
                poll.delete::<CustomResourceDefinition>(Awaits::Former, is_unmanaged)
                    .await?;
            }
            Wave::Workloads => {
                poll.delete_obstacles(Awaits::Nothing).await?;
                poll.delete_workloads(Awaits::Former).await?;
            }
            Wave::External => {
                poll.delete_obstacles(Awaits::Nothing).await?;
                poll.delete_workloads(Awaits::Nothing).await?;
                poll.delete::<Ingress>(Awaits::All, |_, _| true).await?;
                poll.delete::<Service>(Awaits::All, |_, service| is_load_balancer(service))
                    .await?;
                poll.delete::<PersistentVolumeClaim>(Awaits::All, |_, _| true)
                    .await?;
                poll.delete::<PersistentVolume>(Awaits::All, |_, _| true).await?;
            }
            Wave::Namespaces => {
                poll.delete_obstacles(Awaits::Nothing).await?;
                // Custom resources of a definition that was created again may hold resources outside.
                poll.delete::<CustomResourceDefinition>(Awaits::All, is_unmanaged)
                    .await?;
                poll.delete::<Namespace>(Awaits::All, is_users).await?;
            }
        }
        let Poll {
            is_refused,
            is_cut,
            remains,
            ..
        } = poll;
        begin.is_complete |= !is_cut;
        if !is_refused {
            self.refusal = None;
        }
        self.remains = remains;
        Ok(())
    }
}

/// Whether the clean-up deletes an object, given the origins of objects that are re-applied.
type Selects = fn(&BTreeSet<String>, &CleanupObject) -> bool;

/// A single poll of a wave.
struct Poll<'a> {
    shoot: &'a Shoot,
    origins: &'a BTreeSet<String>,
    refusal: &'a mut Option<Error>,
    begin: &'a mut Begin,
    is_refused: bool,
    /// A list of the wave has more objects than a poll deletes.
    is_cut: bool,
    remains: Vec<String>,
}

impl Poll<'_> {
    async fn delete_obstacles(&mut self, awaits: Awaits) -> Result<()> {
        self.delete::<ValidatingWebhookConfiguration>(awaits, is_unmanaged)
            .await?;
        self.delete::<MutatingWebhookConfiguration>(awaits, is_unmanaged)
            .await?;
        self.delete::<APIService>(awaits, |origins, service| {
            is_extended(service) && is_unmanaged(origins, service)
        })
        .await
    }

    /// Only workloads with claims: a controller that releases volumes or load balancers may run in the shoot.
    /// Controllers come before Pods, which the controllers would re-create. ManagedResources are no exception
    /// here, since their Pods would keep claims, too; the suite's own components have no claims.
    async fn delete_workloads(&mut self, awaits: Awaits) -> Result<()> {
        self.delete::<CronJob>(awaits, has_claims).await?;
        self.delete::<Job>(awaits, has_claims).await?;
        self.delete::<Deployment>(awaits, has_claims).await?;
        self.delete::<StatefulSet>(awaits, has_claims).await?;
        self.delete::<DaemonSet>(awaits, has_claims).await?;
        self.delete::<ReplicaSet>(awaits, has_claims).await?;
        self.delete::<ReplicationController>(awaits, has_claims).await?;
        self.delete::<Pod>(awaits, has_claims).await
    }

    async fn delete<K: Object>(&mut self, awaits: Awaits, selects: Selects) -> Result<()> {
        let kind = ApiResource::erase::<K>(&());
        let (objects, all) = (self.shoot.all::<K>(), ListParams::default());
        let (mut to_delete, mut remains) = (Vec::new(), Vec::new());
        // The number of objects is unbounded. The next poll deletes the objects beyond the limit.
        let survey = runtime::bounds::survey(&objects, &all, |object: CleanupObject| {
            if !selects(self.origins, &object) {
                return ControlFlow::Continue(());
            }
            let holds_up = match awaits {
                Awaits::Nothing => false,
                Awaits::Former => self.begin.includes(&object.metadata),
                Awaits::All => true,
            };
            let Metadata {
                name,
                namespace,
                deletion_timestamp,
                ..
            } = object.metadata;
            if holds_up && remains.len() < AT_A_TIME {
                let prefix = namespace.as_ref().map_or(String::new(), |of| format!("{of}/"));
                remains.push(format!("{} {prefix}{name}", kind.kind));
            }
            if deletion_timestamp.is_none() {
                to_delete.push((namespace, name));
            }
            if to_delete.len() < AT_A_TIME {
                ControlFlow::Continue(())
            } else {
                self.is_cut |= awaits == Awaits::Former;
                ControlFlow::Break(())
            }
        });
        let surveyed = survey.await;
        surveyed.context(format_args!("could not list {} in the shoot", kind.kind))?;
        self.remains.append(&mut remains);
        for (namespace, name) in to_delete {
            self.delete_object(&kind, namespace.as_deref(), &name).await?;
        }
        Ok(())
    }

    /// Requests a deletion. A webhook in the shoot may refuse the request for some time, or for ever.
    async fn delete_object(&mut self, kind: &ApiResource, namespace: Option<&str>, name: &str) -> Result<()> {
        let api = api_of(self.shoot, namespace, kind);
        // The default of Jobs and ReplicationControllers leaves their Pods behind.
        let dependents = Some(PropagationPolicy::Background);
        match dynamic::delete(&api, kind, name, dependents).await {
            Err(refusal @ (Error::Transient(_) | Error::Config { .. })) => {
                self.is_refused = true;
                *self.refusal = Some(refusal);
                Ok(())
            }
            outcome => outcome,
        }
    }
}

/// The Api for the deletion of an object of any scope.
fn api_of(shoot: &Shoot, namespace: Option<&str>, kind: &ApiResource) -> Api<DynamicObject> {
    let client = shoot.client().clone();
    match namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, kind),
        None => Api::all_with(client, kind),
    }
}

/// An extended API: served by a pod, which the clean-up deletes.
fn is_extended(service: &CleanupObject) -> bool {
    service.spec.service.is_some()
}

fn is_load_balancer(service: &CleanupObject) -> bool {
    service.spec.type_.as_deref() == Some("LoadBalancer")
}

fn is_users(origins: &BTreeSet<String>, namespace: &CleanupObject) -> bool {
    !SYSTEM_NAMESPACES.contains(&namespace.metadata.name.as_str()) && is_unmanaged(origins, namespace)
}

/// No extension keeps the object: resource-manager re-applies the objects of ManagedResources at once.
fn is_unmanaged(origins: &BTreeSet<String>, object: &CleanupObject) -> bool {
    let Metadata {
        labels, annotations, ..
    } = &object.metadata;
    let is_kept = labels.no_cleanup.as_deref() == Some("true");
    let is_applied = annotations
        .origin
        .as_ref()
        .is_some_and(|origin| origins.contains(origin));
    !is_kept && !is_applied
}

/// A Pod that uses volume claims, or a workload with such Pods.
fn has_claims(_: &BTreeSet<String>, object: &CleanupObject) -> bool {
    object.spec.has_claims()
}

impl Spec {
    fn has_claims(&self) -> bool {
        let is_claim =
            |volume: &Volume| volume.persistent_volume_claim.is_some() || volume.ephemeral.is_some();
        let of_template = |template: &Template| template.spec.has_claims();
        self.volumes.iter().flatten().any(is_claim)
            || self.volume_claim_templates.iter().flatten().next().is_some()
            || self.template.as_ref().is_some_and(of_template)
            || self.job_template.as_ref().is_some_and(of_template)
    }
}

fn sentence(remains: &[String], refusal: Option<&Error>) -> String {
    let quoted = match some_of(remains, QUOTED) {
        none if none.is_empty() => "no poll has ended in time".to_owned(),
        some => some,
    };
    let refused = refusal.map_or(String::new(), |error| {
        format!(". The last refused deletion: {error}")
    });
    format!(
        "objects in the shoot are still being deleted: {quoted}{refused}. Remove what holds them (their finalizers' controllers, \
         or the webhook that refuses their deletion); or delete the Shoot by force, and clean up in the infrastructure by hand"
    )
}

#[cfg(test)]
#[path = "shoot_cleanup_tests.rs"]
mod tests;
