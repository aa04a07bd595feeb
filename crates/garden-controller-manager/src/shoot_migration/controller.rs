//! Reads what the preflight needs, and writes its verdict.

use std::{sync::Arc, time::Duration};

use api::{
    constants::condition::READY_FOR_MIGRATION,
    gardencore::{BackupBucket, BackupEntry, Seed, Shoot},
    meta::{Condition, ConditionStatus},
};
use kube::{
    Api, ResourceExt,
    runtime::{Controller, reflector::ObjectRef, watcher},
};
use runtime::{Next, Reconciler, Result, clock, clusters::Cluster, conditions, error::Context as _, runner};

use super::preflight::{Facts, Verdict, judge, wanted_move};
use crate::{Context, MANAGER};

/// How often an obstacle is looked at again. Seeds are watched; this is for buckets and backup entries, which are not.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

struct ShootMigration {
    context: Context,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let shoots: Api<Shoot> = context.garden.all();
    let seeds: Api<Seed> = context.garden.cluster_wide();
    let controller = Controller::new(shoots, watcher::Config::default());
    let store = controller.store();
    // A change of a seed concerns the shoots that are about to move there.
    let controller = controller.watches(seeds, watcher::Config::default(), move |seed| {
        let name = seed.name_any();
        store
            .state()
            .into_iter()
            .filter(|shoot| wanted_move(shoot).is_some_and(|(_, destination)| destination == name))
            .map(|shoot| ObjectRef::from_obj(shoot.as_ref()))
            .collect::<Vec<_>>()
    });
    let settings = context.runner();
    let garden = context.garden.clone();
    let api_of = move |shoot: &Shoot| garden.namespaced(&shoot.namespace().unwrap_or_default());
    runner::run(controller, api_of, Arc::new(ShootMigration { context }), settings).await;
}

impl Reconciler<Shoot> for ShootMigration {
    const NAME: &'static str = "shoot-migration";

    /// Shoots that neither want to move nor carry the constraint are none of this controller's business.
    fn is_responsible(&self, shoot: &Shoot) -> bool {
        let marked = shoot
            .status
            .as_ref()
            .is_some_and(|s| s.constraint(READY_FOR_MIGRATION).is_some());
        marked || wanted_move(shoot).is_some()
    }

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let Some((source, destination)) = wanted_move(&shoot) else {
            self.write(&shoot, None).await?;
            return Ok(Next::Change);
        };
        let seeds: Api<Seed> = self.context.garden.cluster_wide();
        let read = |name: String| {
            let seeds = seeds.clone();
            async move {
                seeds
                    .get_opt(&name)
                    .await
                    .context(format_args!("could not read seed {name}"))
            }
        };
        let (source, destination) =
            futures::try_join!(read(source.to_owned()), read(destination.to_owned()))?;
        let backup_entry = self.backup_entry(&shoot).await?;
        let bucket = match destination.as_ref().and_then(ResourceExt::uid) {
            Some(uid) => {
                let buckets: Api<BackupBucket> = self.context.garden.cluster_wide();
                buckets
                    .get_opt(&uid)
                    .await
                    .context("could not read the destination's BackupBucket")?
            }
            None => None,
        };
        let verdict = judge(&Facts {
            shoot: &shoot,
            destination: destination.as_ref(),
            source: source.as_ref(),
            backup_entry: backup_entry.as_ref(),
            bucket: bucket.as_ref(),
        });
        let ready = verdict.as_ref().is_some_and(|v| v.ready);
        if self.write(&shoot, verdict.as_ref()).await? && !ready {
            let why = verdict.map(|v| v.message).unwrap_or_default();
            self.context
                .events
                .warning(shoot.as_ref(), "NotReadyForMigration", &why)
                .await;
        }
        Ok(if ready {
            Next::Change
        } else {
            Next::After(LOOK_AGAIN)
        })
    }

    async fn cleanup(&self, shoot: Arc<Shoot>) -> Result<Next> {
        self.apply(shoot).await
    }
}

impl ShootMigration {
    /// The entry with the shoot's name in the seed and its uid, as the gardenlet names it.
    async fn backup_entry(&self, shoot: &Shoot) -> Result<Option<BackupEntry>> {
        let Some(status) = &shoot.status else {
            return Ok(None);
        };
        let name = format!("{}--{}", status.technical_id, status.uid);
        let entries: Api<BackupEntry> = self
            .context
            .garden
            .namespaced(&shoot.namespace().unwrap_or_default());
        entries
            .get_opt(&name)
            .await
            .context(format_args!("could not read BackupEntry {name}"))
    }

    async fn write(&self, shoot: &Shoot, verdict: Option<&Verdict>) -> Result<bool> {
        let shoots: Api<Shoot> = self
            .context
            .garden
            .namespaced(&shoot.namespace().unwrap_or_default());
        conditions::change(
            MANAGER,
            &shoots,
            &shoot.name_any(),
            "constraints",
            |list| match verdict {
                Some(verdict) => {
                    let status = if verdict.ready {
                        ConditionStatus::True
                    } else {
                        ConditionStatus::False
                    };
                    let now = clock::now_k8s();
                    let mut constraint =
                        Condition::new(READY_FOR_MIGRATION, status, verdict.reason, &verdict.message, now);
                    constraint.codes = verdict.codes();
                    constraint.merge_into(list);
                }
                None => list.retain(|c| c.type_ != READY_FOR_MIGRATION),
            },
        )
        .await
    }
}
