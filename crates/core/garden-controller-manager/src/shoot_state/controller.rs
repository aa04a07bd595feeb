//! Releases a ShootState that is being deleted, unless a move needs the ShootState.

use std::sync::Arc;

use api::gardencore::Shoot;
use futures::StreamExt as _;
use kube::{
    Api, ResourceExt,
    runtime::{reflector::ObjectRef, watcher},
};
use runtime::{
    Result,
    client::Cluster,
    controller::{Next, Reconciler, finalizer, runner},
    error::Explain as _,
};

use super::{
    protection::{FINALIZER, needs_protection},
    seen::StateMeta,
};
use crate::Context;

struct ShootStateProtection {
    context: Context,
}

/// Runs the controller until shutdown.
pub(super) async fn run(context: Context) {
    let states: Api<StateMeta> = context.garden.all();
    // Also a Shoot that is gone: then no move needs the ShootState of that name.
    let changed = context.shoots.subscribe().filter_map(|change| {
        let shoot = &change.reference;
        let state = |namespace: &String| ObjectRef::new(&shoot.name).within(namespace);
        std::future::ready(shoot.namespace.as_ref().map(state))
    });
    let controller = runner::controller(states, watcher::Config::default(), |_| None).reconcile_on(changed);
    context
        .run(controller, |context| ShootStateProtection { context })
        .await;
}

impl Reconciler<StateMeta> for ShootStateProtection {
    const NAME: &'static str = "shoot-state";

    async fn apply(&self, _: Arc<StateMeta>) -> Result<Next> {
        Ok(Next::Change)
    }

    async fn cleanup(&self, state: Arc<StateMeta>) -> Result<Next> {
        if !self.is_needed(&state).await? {
            finalizer::remove(&self.states(&state), state.as_ref(), FINALIZER).await?;
        }
        Ok(Next::Change)
    }
}

impl ShootStateProtection {
    fn states(&self, state: &StateMeta) -> Api<StateMeta> {
        self.context
            .garden
            .namespaced(&state.namespace().unwrap_or_default())
    }

    async fn is_needed(&self, state: &StateMeta) -> Result<bool> {
        let shoots: Api<Shoot> = self
            .context
            .garden
            .namespaced(&state.namespace().unwrap_or_default());
        let name = state.name_any();
        let shoot = shoots
            .get_opt(&name)
            .await
            .context(format_args!("could not read Shoot {name}"))?;
        // A later Shoot of the same name needs its own ShootState.
        let shoot = shoot.filter(|shoot| {
            let uid = shoot.uid().unwrap_or_default();
            state.owner_references().is_empty() || state.owner_references().iter().any(|o| o.uid == uid)
        });
        Ok(needs_protection(shoot.as_ref()))
    }
}
