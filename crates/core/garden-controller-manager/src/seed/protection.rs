//! Keeps a Seed in deletion while a Shoot or a BackupEntry needs the Seed, whatever the gardenlet of the seed
//! writes. With the Seed, its namespace with the credentials of the bucket is deleted, and no takeover from
//! the seed is possible.
//!
//! Promise: no user of the garden but an administrator removes the finalizer (policy `gardenlet-seed`).

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use api::{
    constants::finalizer,
    gardencore::{BackupEntry, Seed, Shoot},
};
use kube::{Api, ResourceExt, api::ListParams, runtime::watcher};
use placement::seed_use::{is_needed_by_entry, is_needed_by_shoot};
use runtime::{
    Result,
    bounds::survey,
    client::Cluster,
    controller::{Next, Reconciler, runner},
    error::Explain as _,
};

use crate::Context;

/// How often a deleted Seed is checked for the remaining Shoots and BackupEntries, which wake no controller
/// of Seeds.
const DELETION_REQUEUE: Duration = Duration::from_secs(10);

struct SeedProtection {
    context: Context,
}

/// Runs the controller until shutdown.
pub(super) async fn run(context: Context) {
    let seeds: Api<Seed> = context.garden.cluster_wide();
    let wakes = |seed: &Seed| {
        let is_deleted = seed.metadata.deletion_timestamp.is_some();
        runner::fingerprint((seed.uid(), seed.finalizers(), is_deleted))
    };
    let controller = runner::controller(seeds.clone(), watcher::Config::default(), wakes);
    let (shoots, settings) = (context.shoots.clone(), context.runner());
    let reconciler = Arc::new(SeedProtection { context });
    let running = runner::run(controller, move |_| seeds.clone(), reconciler, settings);
    shoots.run_beside(running).await;
}

impl Reconciler<Seed> for SeedProtection {
    const NAME: &'static str = "seed-protection";
    const FINALIZER: Option<&'static str> = Some(finalizer::SEED);

    async fn apply(&self, _: Arc<Seed>) -> Result<Next> {
        Ok(Next::Change)
    }

    async fn cleanup(&self, seed: Arc<Seed>) -> Result<Next> {
        let Some(user) = self.find_user(&seed).await? else {
            return Ok(Next::Change);
        };
        let note = format!("the Seed stays while a Shoot or a BackupEntry needs the Seed: {user}");
        self.context
            .events
            .warning(seed.as_ref(), "SeedInUse", &note)
            .await;
        Ok(Next::After(DELETION_REQUEUE))
    }
}

impl SeedProtection {
    /// An object that needs the Seed.
    async fn find_user(&self, seed: &Seed) -> Result<Option<String>> {
        let name = seed.name_any();
        let known = self.context.shoots.store().state();
        if let Some(shoot) = known.iter().find(|shoot| is_needed_by_shoot(&name, shoot)) {
            return Ok(Some(describe("Shoot", shoot.as_ref())));
        }
        // The cache may be older than the last Shoot, and no field selects former seeds.
        let shoots: Api<Shoot> = self.context.garden.all();
        let all = ListParams::default();
        let mut user = None;
        let read = survey(&shoots, &all, |shoot: Shoot| {
            if !is_needed_by_shoot(&name, &shoot) {
                return ControlFlow::Continue(());
            }
            user = Some(describe("Shoot", &shoot));
            ControlFlow::Break(())
        });
        read.await.context("could not list Shoots")?;
        if user.is_some() {
            return Ok(user);
        }
        let entries: Api<BackupEntry> = self.context.garden.all();
        let read = survey(&entries, &all, |entry: BackupEntry| {
            if !is_needed_by_entry(seed, &entry) {
                return ControlFlow::Continue(());
            }
            user = Some(describe("BackupEntry", &entry));
            ControlFlow::Break(())
        });
        read.await.context("could not list BackupEntries")?;
        Ok(user)
    }
}

fn describe(kind: &str, object: &impl ResourceExt) -> String {
    format!(
        "{kind} {}/{}",
        object.namespace().unwrap_or_default(),
        object.name_any()
    )
}
