//! Watches Shoots that no seed has taken, and the Seeds and CloudProfiles in their specs.

use std::sync::Arc;

use api::gardencore::{CloudProfile, Seed, Shoot};
use kube::{
    Api, ResourceExt,
    runtime::{
        reflector::{ObjectRef, Store},
        watcher,
    },
};
use runtime::{
    Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler},
    error::Explain as _,
};

use super::decision::{is_domain_refused, is_unplaced, obstacle, status};
use crate::{Context, MANAGER, shoot_migration::cloud_profile};

struct ShootPlacement {
    context: Context,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let seeds: Api<Seed> = context.garden.cluster_wide();
    let profiles: Api<CloudProfile> = context.garden.cluster_wide();
    let controller = context.shoots.controller(|_| None);
    let (of_seed, of_profile) = (controller.store(), controller.store());
    let controller = controller
        .watches(seeds, watcher::Config::default(), move |seed| {
            let name = seed.name_any();
            unplaced(&of_seed, |shoot| shoot.spec.seed_name.as_ref() == Some(&name))
        })
        .watches(profiles, watcher::Config::default(), move |profile| {
            let name = profile.name_any();
            unplaced(&of_profile, |shoot| {
                shoot.spec.cloud_profile_name() == Some(name.as_str())
            })
        });
    context
        .run(controller, |context| ShootPlacement { context })
        .await;
}

/// The Shoots that no seed has taken, and that match the predicate.
fn unplaced(shoots: &Store<Shoot>, matches: impl Fn(&Shoot) -> bool) -> Vec<ObjectRef<Shoot>> {
    let all = shoots.state();
    let waiting = all.iter().filter(|shoot| is_unplaced(shoot) && matches(shoot));
    waiting.map(|shoot| ObjectRef::from_obj(shoot.as_ref())).collect()
}

impl Reconciler<Shoot> for ShootPlacement {
    const NAME: &'static str = "shoot-placement";

    fn is_responsible(&self, shoot: &Shoot) -> bool {
        is_unplaced(shoot)
    }

    async fn apply(&self, cached: Arc<Shoot>) -> Result<Next> {
        let namespace = cached.namespace().unwrap_or_default();
        let shoots: Api<Shoot> = self.context.garden.namespaced(&namespace);
        // The cache has no tolerations and no selectors.
        let read = self.context.latest(&cached).await?;
        let Some(shoot) = read.filter(is_unplaced) else {
            return Ok(Next::Change);
        };
        let seeds: Api<Seed> = self.context.garden.cluster_wide();
        let seed = match shoot.spec.seed_name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => seeds
                .get_opt(name)
                .await
                .context(format_args!("could not read seed {name}"))?,
            None => None,
        };
        let profile = cloud_profile(&self.context, &shoot).await?;
        let obstacle = obstacle(&shoot, seed.as_ref(), profile.as_ref());
        if obstacle.is_none() && is_domain_refused(&shoot) {
            return Ok(Next::Change);
        }
        let Some(status) = status(&shoot, obstacle.as_deref(), clock::now_k8s()) else {
            return Ok(Next::Change);
        };
        // Conditional: a gardenlet that has just begun has precedence; its write triggers this controller
        // again.
        let written = MANAGER.try_merge_status_of(&shoots, &shoot, &status).await?;
        if written.is_none() {
            return Ok(Next::Change);
        }
        if let Some(why) = obstacle {
            self.context.events.warning(&shoot, "NoSeed", &why).await;
        }
        Ok(Next::Change)
    }

    async fn cleanup(&self, _: Arc<Shoot>) -> Result<Next> {
        Ok(Next::Change)
    }
}
