//! Sets and removes the finalizer as the Shoot of the same name goes through a move.

use std::sync::Arc;

use api::gardencore::{Shoot, ShootState};
use kube::{
    Api, ResourceExt,
    runtime::{Controller, reflector::ObjectRef, watcher},
};
use runtime::{Next, Reconciler, Result, clusters::Cluster, error::Context as _, finalizer, runner};

use super::protection::{FINALIZER, needs_protection};
use crate::Context;

struct ShootStateProtection {
    context: Context,
}

/// Runs the controller until shutdown.
pub async fn run(context: Context) {
    let states: Api<ShootState> = context.garden.all();
    let shoots: Api<Shoot> = context.garden.all();
    let controller = Controller::new(states, watcher::Config::default()).watches(
        shoots,
        watcher::Config::default(),
        |shoot| {
            shoot
                .namespace()
                .map(|namespace| ObjectRef::new(&shoot.name_any()).within(&namespace))
        },
    );
    let settings = context.runner();
    let garden = context.garden.clone();
    let api_of = move |state: &ShootState| garden.namespaced(&state.namespace().unwrap_or_default());
    runner::run(
        controller,
        api_of,
        Arc::new(ShootStateProtection { context }),
        settings,
    )
    .await;
}

impl Reconciler<ShootState> for ShootStateProtection {
    const NAME: &'static str = "shoot-state";

    async fn apply(&self, state: Arc<ShootState>) -> Result<Next> {
        let states = self.states(&state);
        if self.is_needed(&state).await? {
            finalizer::ensure(&states, state.as_ref(), FINALIZER).await?;
        } else {
            finalizer::remove(&states, state.as_ref(), FINALIZER).await?;
        }
        Ok(Next::Change)
    }

    /// A finalizer cannot be added to an object that is being deleted, only kept.
    async fn cleanup(&self, state: Arc<ShootState>) -> Result<Next> {
        if !self.is_needed(&state).await? {
            finalizer::remove(&self.states(&state), state.as_ref(), FINALIZER).await?;
        }
        Ok(Next::Change)
    }
}

impl ShootStateProtection {
    fn states(&self, state: &ShootState) -> Api<ShootState> {
        self.context
            .garden
            .namespaced(&state.namespace().unwrap_or_default())
    }

    async fn is_needed(&self, state: &ShootState) -> Result<bool> {
        let shoots: Api<Shoot> = self
            .context
            .garden
            .namespaced(&state.namespace().unwrap_or_default());
        let name = state.name_any();
        let shoot = shoots
            .get_opt(&name)
            .await
            .context(format_args!("could not read Shoot {name}"))?;
        Ok(needs_protection(shoot.as_ref()))
    }
}
