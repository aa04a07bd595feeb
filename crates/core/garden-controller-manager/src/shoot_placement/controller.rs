//! Watches Shoots that no seed has taken, and the Seeds in their specs.

use std::sync::Arc;

use api::gardencore::{Seed, Shoot};
use kube::{
    Api, ResourceExt,
    runtime::{reflector::ObjectRef, watcher},
};
use runtime::{
    Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler},
    error::Explain as _,
};

use super::decision::{is_domain_refused, is_unplaced, obstacle, status};
use crate::{Context, MANAGER};

struct ShootPlacement {
    context: Context,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let seeds: Api<Seed> = context.garden.cluster_wide();
    let controller = context.shoots.controller(|_| None);
    let store = controller.store();
    let controller = controller.watches(seeds, watcher::Config::default(), move |seed| {
        let name = seed.name_any();
        let waiting = |shoot: &Arc<Shoot>| is_unplaced(shoot) && shoot.spec.seed_name.as_ref() == Some(&name);
        store
            .state()
            .iter()
            .filter(|s| waiting(s))
            .map(|s| ObjectRef::from_obj(s.as_ref()))
            .collect::<Vec<_>>()
    });
    context
        .run(controller, |context| ShootPlacement { context })
        .await;
}

impl Reconciler<Shoot> for ShootPlacement {
    const NAME: &'static str = "shoot-placement";

    fn is_responsible(&self, shoot: &Shoot) -> bool {
        is_unplaced(shoot)
    }

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let seeds: Api<Seed> = self.context.garden.cluster_wide();
        let seed = match shoot.spec.seed_name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => seeds
                .get_opt(name)
                .await
                .context(format_args!("could not read seed {name}"))?,
            None => None,
        };
        let obstacle = obstacle(&shoot, seed.as_ref());
        if obstacle.is_none() && is_domain_refused(&shoot) {
            return Ok(Next::Change);
        }
        let Some(status) = status(&shoot, obstacle.as_deref(), clock::now_k8s()) else {
            return Ok(Next::Change);
        };
        let shoots: Api<Shoot> = self
            .context
            .garden
            .namespaced(&shoot.namespace().unwrap_or_default());
        // Conditional: a gardenlet that has just begun has precedence; its write triggers this controller
        // again.
        let written = MANAGER
            .try_merge_status_of(&shoots, shoot.as_ref(), &status)
            .await?;
        if written.is_none() {
            return Ok(Next::Change);
        }
        if let Some(why) = obstacle {
            self.context.events.warning(shoot.as_ref(), "NoSeed", &why).await;
        }
        Ok(Next::Change)
    }

    async fn cleanup(&self, _: Arc<Shoot>) -> Result<Next> {
        Ok(Next::Change)
    }
}
