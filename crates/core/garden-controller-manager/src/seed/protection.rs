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
use futures::{
    StreamExt as _,
    stream::{iter, select},
};
use kube::{
    Api, ResourceExt,
    api::ListParams,
    runtime::{reflector::ObjectRef, watcher},
};
use placement::seed_use::{
    is_identity, is_needed_by_entry, is_needed_by_shoot, seeds_needed_by_entry, seeds_needed_by_shoot,
};
use runtime::{
    Result,
    bounds::survey,
    client::Cluster,
    controller::{Next, Reconciler, runner},
    error::Explain as _,
};

use crate::{
    Context, backup_entries,
    changes::{self, Keys, concerned},
};

/// Requeue interval of a Seed in deletion. Shoots and BackupEntries are watched; the interval covers lost
/// watch events, and is shorter than the time for which an API server keeps Events (one hour).
const RESYNC_PERIOD: Duration = Duration::from_secs(600);
/// The same while only a list shows the object that needs the Seed: the object may go before a watch shows
/// the object, and then no event wakes the controller.
const UNKNOWN_USER_PERIOD: Duration = Duration::from_secs(10);

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
    let (shoots, entries) = (context.shoots.clone(), context.backup_entries.clone());
    let changed = select(
        concerned(&shoots, seeds_of_shoot, content_of_shoot),
        concerned(&entries, seeds_of_entry, backup_entries::content),
    );
    let known = controller.store();
    let controller =
        controller.reconcile_on(changed.flat_map(move |key| iter(deleted_seeds(&known.state(), &key))));
    let settings = context.runner();
    let reconciler = Arc::new(SeedProtection { context });
    let running = runner::run(controller, move |_| seeds.clone(), reconciler, settings);
    shoots.run_beside(entries.run_beside(running)).await;
}

fn seeds_of_shoot(shoot: &Shoot) -> Keys {
    seeds_needed_by_shoot(shoot).map(str::to_owned).collect()
}

/// A flow writes its progress into the Shoot each second, and such a write wakes no Seed.
fn content_of_shoot(shoot: &Shoot) -> u64 {
    changes::hash((shoot.uid(), seeds_of_shoot(shoot)))
}

fn seeds_of_entry(entry: &BackupEntry) -> Keys {
    seeds_needed_by_entry(entry).map(str::to_owned).collect()
}

/// The Seeds in deletion with this name or uid. The deletion of a Seed wakes the controller by itself.
fn deleted_seeds(seeds: &[Arc<Seed>], name_or_uid: &str) -> Vec<ObjectRef<Seed>> {
    let deleted = seeds
        .iter()
        .filter(|seed| seed.metadata.deletion_timestamp.is_some());
    deleted
        .filter(|seed| is_identity(seed, name_or_uid))
        .map(|seed| ObjectRef::from_obj(seed.as_ref()))
        .collect()
}

impl Reconciler<Seed> for SeedProtection {
    const NAME: &'static str = "seed-protection";
    const FINALIZER: Option<&'static str> = Some(finalizer::SEED);

    async fn apply(&self, _: Arc<Seed>) -> Result<Next> {
        Ok(Next::Change)
    }

    async fn cleanup(&self, seed: Arc<Seed>) -> Result<Next> {
        let (user, period) = match self.find_known_user(&seed) {
            Some(user) => (user, RESYNC_PERIOD),
            None => match self.find_unknown_user(&seed).await? {
                Some(user) => (user, UNKNOWN_USER_PERIOD),
                None => return Ok(Next::Change),
            },
        };
        let note = format!("the Seed stays while a Shoot or a BackupEntry needs the Seed: {user}");
        self.context
            .events
            .answer_with_warning(seed.as_ref(), "SeedInUse", &note)
            .await;
        Ok(Next::After(period))
    }
}

impl SeedProtection {
    /// An object that needs the Seed, from the garden: the caches may be older than the last Shoot or
    /// BackupEntry, and no field selects former seeds.
    async fn find_unknown_user(&self, seed: &Seed) -> Result<Option<String>> {
        let name = seed.name_any();
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

    /// An object that needs the Seed, from the caches.
    fn find_known_user(&self, seed: &Seed) -> Option<String> {
        let name = seed.name_any();
        let shoots = self.context.shoots.store().state();
        if let Some(shoot) = shoots.iter().find(|shoot| is_needed_by_shoot(&name, shoot)) {
            return Some(describe("Shoot", shoot.as_ref()));
        }
        let entries = self.context.backup_entries.store().state();
        let entry = entries.iter().find(|entry| is_needed_by_entry(seed, entry))?;
        Some(describe("BackupEntry", entry.as_ref()))
    }
}

fn describe(kind: &str, object: &impl ResourceExt) -> String {
    format!(
        "{kind} {}/{}",
        object.namespace().unwrap_or_default(),
        object.name_any()
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::SeedSpec;
    use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
    use serde_json::{Value, json};

    use super::*;

    fn seed(name: &str, is_deleted: bool) -> Arc<Seed> {
        let mut seed = Seed::new(name, SeedSpec::default());
        seed.metadata.uid = Some(format!("uid-of-{name}"));
        seed.metadata.deletion_timestamp = is_deleted.then_some(Time(Timestamp::UNIX_EPOCH));
        Arc::new(seed)
    }

    #[test]
    fn a_change_wakes_the_seed_in_deletion_by_name_and_by_bucket() {
        let seeds = [seed("a", true), seed("b", false)];
        let woken = |key: &str| -> Vec<_> {
            let woken = deleted_seeds(&seeds, key);
            woken.into_iter().map(|reference| reference.name).collect()
        };
        assert_eq!(woken("a"), ["a"]);
        assert_eq!(woken("uid-of-a"), ["a"]);
        assert!(woken("b").is_empty() && woken("uid-of-b").is_empty() && woken("c").is_empty());
    }

    /// Otherwise the Seed stays in deletion until the next resync.
    #[test]
    fn a_shoot_concerns_each_seed_that_the_shoot_needs() {
        let shoot = |status: &Value| -> Shoot {
            let spec =
                json!({"region": "r", "seedName": "b", "provider": {"type": "metal"}, "kubernetes": {}});
            serde_json::from_value(json!({"metadata": {"name": "web"}, "spec": spec, "status": status}))
                .unwrap()
        };
        let moving = json!({"seedName": "a", "formerSeeds": [{"name": "c", "epoch": 1}]});
        assert_eq!(
            seeds_of_shoot(&shoot(&moving)),
            ["a", "b", "c"].map(str::to_owned).into()
        );
        let progress =
            json!({"seedName": "a", "formerSeeds": [{"name": "c", "epoch": 1}], "hibernated": true});
        assert_eq!(
            content_of_shoot(&shoot(&moving)),
            content_of_shoot(&shoot(&progress))
        );
        let left = json!({"seedName": "b"});
        assert_ne!(content_of_shoot(&shoot(&moving)), content_of_shoot(&shoot(&left)));
    }
}
