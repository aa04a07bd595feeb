//! Gives each seed its extensions, and removes unneeded extensions.

use std::{collections::BTreeMap, ops::ControlFlow, sync::Arc, time::Duration};

use api::gardencore::{ControllerInstallation, Seed, Shoot};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, Preconditions},
    runtime::watcher,
};
use runtime::{
    Result,
    bounds::survey,
    client::Cluster,
    controller::{Next, Reconciler, runner},
    error::Explain as _,
};

use super::{
    choice::{may_go, plan, wanted},
    need::{Needs, of_backups, of_seed, of_shoot},
    sources::Sources,
};
use crate::{Context, MANAGER, shoots};

/// Requeue interval of a seed without changes. Every input is watched; the interval covers lost watch events.
const RESYNC_PERIOD: Duration = Duration::from_secs(600);

struct SeedExtensions {
    context: Context,
    sources: Sources,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let seeds: Api<Seed> = context.garden.cluster_wide();
    let controller = runner::controller(seeds.clone(), watcher::Config::default(), |_| None);
    let (shoots, entries) = (context.shoots.clone(), context.backup_entries.clone());
    let (sources, changed) = Sources::watch(&context, controller.store());
    let controller = controller.reconcile_on(changed);
    let settings = context.runner();
    let reconciler = Arc::new(SeedExtensions { context, sources });
    let running = runner::run(controller, move |_| seeds.clone(), reconciler, settings);
    shoots.run_beside(entries.run_beside(running)).await;
}

impl Reconciler<Seed> for SeedExtensions {
    const NAME: &'static str = "controller-registration";

    async fn apply(&self, seed: Arc<Seed>) -> Result<Next> {
        self.bring_about(&seed).await
    }

    /// A seed that is being deleted keeps the extensions for the last shoots and backups.
    async fn cleanup(&self, seed: Arc<Seed>) -> Result<Next> {
        self.bring_about(&seed).await
    }
}

impl SeedExtensions {
    async fn bring_about(&self, seed: &Seed) -> Result<Next> {
        self.sources.ready().await?;
        let name = seed.name_any();
        let wanted = self.wanted(seed, &self.sources.shoots_of(&name));
        let plan = plan(&name, &wanted, &self.sources.installations.state());
        let installations: Api<ControllerInstallation> = self.context.garden.cluster_wide();
        for installation in &plan.write {
            MANAGER.apply(&installations, installation).await?;
            let (seed, installation) = (name.as_str(), installation.name_any());
            tracing::info!(seed, installation, "the seed gets an extension");
        }
        for installation in &plan.release {
            self.release(seed, &installation.name_any()).await?;
        }
        Ok(Next::After(RESYNC_PERIOD))
    }

    fn wanted(&self, seed: &Seed, shoots: &[Arc<Shoot>]) -> BTreeMap<String, Option<String>> {
        let sources = &self.sources;
        let registrations = sources.registrations.state();
        let mut needs: Needs = of_seed(seed, &registrations);
        let (buckets, entries) = (sources.buckets.state(), sources.entries.store().state());
        needs.extend(of_backups(&seed.name_any(), &buckets, &entries));
        needs.extend(shoots.iter().flat_map(|shoot| of_shoot(shoot, &registrations)));
        wanted(seed, &registrations, &needs, !shoots.is_empty())
    }

    /// Deletes an installation, if a fresh read of the garden confirms that the installation is unneeded.
    async fn release(&self, seed: &Seed, name: &str) -> Result<()> {
        let installations: Api<ControllerInstallation> = self.context.garden.cluster_wide();
        let read = installations.get_opt(name).await;
        let read = read.context(format_args!("could not read ControllerInstallation {name}"))?;
        let Some(read) = read.filter(|read| read.metadata.deletion_timestamp.is_none() && may_go(read))
        else {
            return Ok(());
        };
        let shoots = self.shoots_now(&seed.name_any()).await?;
        let wanted = self.wanted(seed, &shoots);
        let registration = read.spec.registration_ref.name.as_deref().unwrap_or_default();
        if wanted.contains_key(registration) {
            return Ok(());
        }
        // Conditional on uid and resourceVersion: a gardenlet that finds at this moment that the installation
        // is needed writes to it.
        let exactly = Preconditions {
            uid: read.uid(),
            resource_version: read.resource_version(),
        };
        let params = DeleteParams::default().preconditions(exactly);
        match installations.delete(name, &params).await {
            Err(kube::Error::Api(status)) if status.is_not_found() || status.is_conflict() => Ok(()),
            Err(error) => Err(error).context(format_args!("could not delete ControllerInstallation {name}")),
            Ok(_) => {
                let note = "nothing in the seed needs it any more";
                self.context.events.normal(&read, "NotNeeded", note).await;
                Ok(())
            }
        }
    }

    /// The shoots of a seed, read from the garden and not from the cache. Seeds that still clean up cannot be
    /// selected by a field, so the cache provides these: their gardenlets report the remaining objects.
    async fn shoots_now(&self, seed: &str) -> Result<Vec<Arc<Shoot>>> {
        let api: Api<Shoot> = self.context.garden.all();
        let mut found = self.sources.shoots_of(seed);
        for field in ["spec.seedName", "status.seedName"] {
            let some = ListParams::default().fields(&format!("{field}={seed}"));
            let read = survey(&api, &some, |mut shoot: Shoot| {
                shoots::trim(&mut shoot);
                found.push(Arc::new(shoot));
                ControlFlow::Continue(())
            });
            read.await.context("could not list Shoots")?;
        }
        Ok(found)
    }
}
