//! Keeps the status of the Seed up to date. Releases the Seed only after the
//! last object that needs the seed is gone; the extensions go last.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use api::{
    constants::{
        condition::{BACKUP_BUCKETS_READY, EMERGENCY_STOP_SHOOT_RECONCILIATIONS},
        finalizer::GARDENER,
    },
    gardencore::{BackupBucket, BackupEntry, ControllerInstallation, Seed, Shoot},
    meta::{Condition, ErrorCode},
};
use futures::stream;
use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        core::v1::{Namespace, Service},
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use kube::{
    Api, ResourceExt,
    api::ListParams,
    core::PartialObjectMeta,
    runtime::{reflector::ObjectRef, watcher},
};
use placement::{
    is_released,
    seed_use::{is_held_by_shoot, is_needed_by_entry},
};
use runtime::{
    Error, Result,
    bounds::survey,
    client::{Cluster, apply},
    clock,
    controller::{Next, Reconciler, conditions, runner},
    error::Explain as _,
};
use serde_json::json;
use tokio::time::Instant;

use super::{
    conditions::{
        ComponentDeployment, backup_bucket, edge_address, emergency_stop, gardenlet, system_components,
    },
    fence_report::{self, FenceReport},
    lease::LEASE_DURATION,
    leftovers,
    without_shoots::{self, SeedUse},
};
use crate::{Context, MANAGER};

/// How often the Seed is checked without a change: for values without a watch (the version of the seed).
const SYNC_PERIOD: Duration = Duration::from_secs(600);
/// How often a deleted Seed is checked for remaining dependents.
const DELETION_REQUEUE: Duration = Duration::from_secs(10);

struct SeedController {
    context: Arc<Context>,
}

/// Runs the controller until shutdown.
pub async fn run(context: Arc<Context>) {
    let seeds: Api<Seed> = context.garden.cluster_wide();
    let buckets: Api<BackupBucket> = context.garden.cluster_wide();
    let name = context.seed_name.clone();
    let mine = move || Some(ObjectRef::<Seed>::new(&name));
    let own = watcher::Config::default().fields(&format!("metadata.name={}", context.seed_name));
    let bucket = watcher::Config::default().fields(&format!("spec.seedName={}", context.seed_name));
    let mut controller = runner::controller(seeds.clone(), own, |_| None).watches(buckets, bucket, {
        let mine = mine.clone();
        move |_| mine()
    });
    for component in &context.config.system_components {
        let deployments: Api<Deployment> = context.seed.namespaced(&component.namespace);
        let one = watcher::Config::default().fields(&format!("metadata.name={}", component.name));
        let mine = mine.clone();
        controller = controller.watches(deployments, one, move |_| mine());
    }
    let services: Api<Service> = context.seed.namespaced(&context.settings.exposure_namespace);
    let edge =
        watcher::Config::default().fields(&format!("metadata.name={}", context.settings.ingress_service));
    controller = controller.watches(services, edge, move |_| mine());
    // The first renewal after a silence must be reported at once; later renewals change no report.
    let beats = stream::unfold(
        (context.heartbeat.subscribe(), None::<Instant>),
        |(mut beats, mut last)| async move {
            loop {
                beats.changed().await.ok()?;
                let now = *beats.borrow_and_update();
                let silent = last
                    .zip(now)
                    .is_none_or(|(last, now)| now.duration_since(last) > LEASE_DURATION);
                last = now;
                if silent {
                    return Some(((), (beats, last)));
                }
            }
        },
    );
    let controller = controller.reconcile_all_on(beats);
    let settings = context.runner();
    runner::run(
        controller,
        move |_| seeds.clone(),
        Arc::new(SeedController { context }),
        settings,
    )
    .await;
}

impl Reconciler<Seed> for SeedController {
    const NAME: &'static str = "seed";
    const FINALIZER: Option<&'static str> = Some(GARDENER);

    async fn apply(&self, seed: Arc<Seed>) -> Result<Next> {
        self.write_status(&seed).await?;
        let bucket = self.read_bucket(&seed).await?;
        // Before the conditions, which let moves to this seed begin.
        leftovers::record(&self.context, &seed).await?;
        self.write_conditions(&seed, bucket.as_ref()).await?;
        self.record_use(&seed).await?;
        Ok(Next::After(SYNC_PERIOD))
    }

    async fn cleanup(&self, seed: Arc<Seed>) -> Result<Next> {
        if let Some(why) = self.still_needed(&seed).await? {
            let note = format!("the seed stays until nothing needs it: {why}");
            self.context
                .garden_events
                .warning(seed.as_ref(), "SeedInUse", &note)
                .await;
            return Ok(Next::After(DELETION_REQUEUE));
        }
        let buckets: Api<BackupBucket> = self.context.garden.cluster_wide();
        let Some(name) = seed.uid() else {
            return Ok(Next::Change);
        };
        if buckets
            .get_opt(&name)
            .await
            .context("could not read the BackupBucket")?
            .is_none()
        {
            return self.without_extensions(&seed).await;
        }
        apply::delete(&buckets, &name).await?;
        Ok(Next::After(DELETION_REQUEUE))
    }
}

impl SeedController {
    /// Extensions go last, because only this gardenlet can remove the extensions.
    async fn without_extensions(&self, seed: &Seed) -> Result<Next> {
        let api: Api<ControllerInstallation> = self.context.garden.cluster_wide();
        let mine = ListParams::default().fields(&format!("spec.seedRef.name={}", self.context.seed_name));
        let left = api
            .list(&mine)
            .await
            .context("could not list ControllerInstallations")?;
        let Some(first) = left.items.first() else {
            return Ok(Next::Change);
        };
        let note = format!(
            "the seed stays until its extensions are taken away: ControllerInstallation {} is there ({} in all)",
            first.name_any(),
            left.items.len()
        );
        self.context.garden_events.warning(seed, "SeedInUse", &note).await;
        Ok(Next::After(DELETION_REQUEUE))
    }

    fn seeds(&self) -> Api<Seed> {
        self.context.garden.cluster_wide()
    }

    /// Writes the responsible gardenlet with the end of its certificate, and the version and the cluster
    /// identity of the seed.
    async fn write_status(&self, seed: &Seed) -> Result<()> {
        let client = self.context.seed.client();
        let version = client
            .apiserver_version()
            .await
            .context("the seed's API does not answer")?
            .git_version;
        let namespaces: Api<Namespace> = self.context.seed.cluster_wide();
        let system = namespaces
            .get("kube-system")
            .await
            .context("could not read the seed's namespace kube-system")?;
        let status = seed.status.clone().unwrap_or_default();
        let gardener = status.gardener.as_ref();
        let fence = self.fence_to_tell(seed).await?;
        let max_shoots = self.context.config.max_shoots.map(|shoots| shoots.to_string());
        let expiry = self.context.certificate_expiry.map(Time);
        let known = status.owner_check_fence_seconds == fence
            && status.client_certificate_expiration_timestamp == expiry
            && status.kubernetes_version.as_deref() == Some(version.as_str())
            && status.observed_generation == seed.metadata.generation
            && status.cluster_identity == system.uid()
            && status.allocatable.get("shoots").map(|shoots| shoots.0.clone()) == max_shoots
            && gardener.is_some_and(|g| {
                g.version == env!("CARGO_PKG_VERSION") && g.id == self.context.config.instance_id
            });
        if known {
            return Ok(());
        }
        let body = json!({
            "gardener": {
                "id": self.context.config.instance_id, "name": "gardenlet", "version": env!("CARGO_PKG_VERSION"),
            },
            "kubernetesVersion": version,
            "clusterIdentity": system.uid(),
            "observedGeneration": seed.metadata.generation,
            "ownerCheckFenceSeconds": fence,
            // `null` removes the time of a former certificate where the gardenlet uses a token.
            "clientCertificateExpirationTimestamp": expiry,
            // `null` removes the resource where the flag was removed.
            "capacity": {"shoots": max_shoots},
            "allocatable": {"shoots": max_shoots},
        });
        MANAGER
            .merge_status(&self.seeds(), &seed.name_any(), &body)
            .await
            .map(|_| ())
    }

    /// Shoots are read only if the fence becomes shorter.
    async fn fence_to_tell(&self, seed: &Seed) -> Result<Option<i64>> {
        let (given, before) = match fence_report::plan_report(seed) {
            FenceReport::Now(given) => return Ok(given),
            FenceReport::Shorter { given, before } => (given, before),
        };
        let is_used = self.shoots_here(seed).await?.is_some();
        Ok(if is_used { before } else { given })
    }

    /// The BackupBucket of the Seed, which garden-controller-manager creates. `None` until then.
    async fn read_bucket(&self, seed: &Seed) -> Result<Option<BackupBucket>> {
        let Some(name) = bucket_name(seed)? else {
            return Ok(None);
        };
        let buckets: Api<BackupBucket> = self.context.garden.cluster_wide();
        buckets
            .get_opt(&name)
            .await
            .context(format_args!("could not read BackupBucket {name}"))
    }

    async fn write_conditions(&self, seed: &Seed, bucket: Option<&BackupBucket>) -> Result<()> {
        let mut found: Vec<ComponentDeployment> = Vec::new();
        for component in &self.context.config.system_components {
            let deployments: Api<Deployment> = self.context.seed.namespaced(&component.namespace);
            let deployment = deployments.get_opt(&component.name).await;
            let doing = format_args!(
                "could not read Deployment {}/{}",
                component.namespace, component.name
            );
            found.push((component.clone(), deployment.context(doing)?));
        }
        let settings = &self.context.settings;
        let services: Api<Service> = self.context.seed.namespaced(&settings.exposure_namespace);
        let name = format!("{}/{}", settings.exposure_namespace, settings.ingress_service);
        let edge = services.get_opt(&settings.ingress_service).await;
        let edge = edge.context(format_args!("could not read Service {name}"))?;
        let now = clock::now_k8s();
        let new: Vec<Condition> = [
            gardenlet(self.context.heartbeat.is_fresh(LEASE_DURATION), now.clone()),
            Some(system_components(&found, now.clone())),
            Some(edge_address(&name, edge.as_ref(), now.clone())),
            emergency_stop(seed, now.clone()),
            backup_bucket(seed, bucket, now),
        ]
        .into_iter()
        .flatten()
        .collect();
        conditions::change(MANAGER, &self.seeds(), &seed.name_any(), "conditions", |list| {
            if seed.spec.backup.is_none() {
                list.retain(|c| c.type_ != BACKUP_BUCKETS_READY);
            }
            if !placement::pause::is_stopped(seed.annotations()) {
                list.retain(|c| c.type_ != EMERGENCY_STOP_SHOOT_RECONCILIATIONS);
            }
            for condition in &new {
                condition.clone().merge_into(list);
            }
        })
        .await
        .map(|_| ())
    }

    async fn record_use(&self, seed: &Seed) -> Result<()> {
        if self.shoots_here(seed).await?.is_none() {
            without_shoots::record(&self.context, SeedUse::Free).await?;
            // The second read finds a shoot that was created after the first read. A later shoot records the
            // use before its first flow.
            if self.shoots_here(seed).await?.is_none() {
                return Ok(());
            }
        }
        without_shoots::record(&self.context, SeedUse::InUse).await
    }

    /// Number of shoots that are in the seed or assigned to the seed, with the name of the first.
    async fn shoots_here(&self, seed: &Seed) -> Result<Option<(usize, String)>> {
        let name = &self.context.seed_name;
        let hosted: Api<PartialObjectMeta<Shoot>> = self.context.garden.all();
        let some = ListParams::default().fields(&format!("status.seedName={name}"));
        let found = hosted.list(&some).await.context("could not list Shoots")?;
        // A finalizer of a user keeps a Shoot in the garden, and no object in this seed.
        let found: Vec<_> = found
            .items
            .into_iter()
            .filter(|shoot| !is_released(shoot))
            .collect();
        if let Some(shoot) = found.first() {
            return Ok(Some((found.len(), path(shoot))));
        }
        let shoots: Api<Shoot> = self.context.garden.all();
        let some = ListParams::default().fields(&format!("spec.seedName={name}"));
        let mut assigned: Option<(usize, String)> = None;
        let read = survey(&shoots, &some, |shoot: Shoot| {
            if is_held_by_shoot(seed, &shoot) {
                assigned.get_or_insert_with(|| (0, path(&shoot))).0 += 1;
            }
            ControlFlow::Continue(())
        });
        read.await.context("could not list Shoots")?;
        Ok(assigned)
    }

    async fn still_needed(&self, seed: &Seed) -> Result<Option<String>> {
        if let Some((many, shoot)) = self.shoots_here(seed).await? {
            return Ok(Some(format!(
                "move or delete its shoots first ({many}, e.g. {shoot})"
            )));
        }
        if let Some(namespace) = leftovers::first_prepared(&self.context).await? {
            return Ok(Some(format!(
                "namespace {namespace} of the seed is prepared for a shoot, and goes with the grant"
            )));
        }
        let entries: Api<BackupEntry> = self.context.garden.all();
        let all = ListParams::default();
        let mut needing = None;
        let read = survey(&entries, &all, |entry: BackupEntry| {
            if is_needed_by_entry(seed, &entry) {
                needing = Some(path(&entry));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        read.await.context("could not list BackupEntries")?;
        Ok(needing.map(|entry| format!("BackupEntry {entry} is here, or names the bucket of this seed")))
    }
}

fn path(shoot: &impl ResourceExt) -> String {
    format!("{}/{}", shoot.namespace().unwrap_or_default(), shoot.name_any())
}

/// Name of the BackupBucket of a Seed with backups: the uid of the Seed.
fn bucket_name(seed: &Seed) -> Result<Option<String>> {
    let Some(backup) = &seed.spec.backup else {
        return Ok(None);
    };
    if backup.credentials_ref.is_none() {
        return Err(Error::config(
            ErrorCode::ErrConfigurationProblem,
            "spec.backup has no credentialsRef: name the Secret with the credentials of the object store",
        ));
    }
    let uid = seed.uid();
    uid.map(Some)
        .ok_or_else(|| Error::bug("a Seed without uid was read from the garden"))
}
