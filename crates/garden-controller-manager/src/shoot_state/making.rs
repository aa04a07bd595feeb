//! Makes what is missing, and empties what is spent.

use std::{sync::Arc, time::Duration};

use api::gardencore::{Shoot, ShootState, ShootStateSpec};
use kube::{
    Api, Resource, ResourceExt,
    api::PostParams,
    runtime::{Controller, reflector::ObjectRef, watcher},
};
use runtime::{Next, Reconciler, Result, clusters::Cluster, error::Explain as _, finalizer};
use serde_json::json;

use super::protection::{FINALIZER, is_spent};
use crate::{Context, MANAGER};

/// When the ShootState of an earlier Shoot of the same name is looked at again: it is being collected.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

struct ShootStateMaking {
    context: Context,
}

/// Runs the controller until shutdown.
pub(super) async fn run(context: Context) {
    let shoots: Api<Shoot> = context.garden.all();
    let states: Api<ShootState> = context.garden.all();
    let controller = Controller::new(shoots, watcher::Config::default()).watches(
        states,
        watcher::Config::default(),
        |state| {
            let namespace = state.namespace()?;
            Some(ObjectRef::new(&state.name_any()).within(&namespace))
        },
    );
    context
        .run(controller, |context| ShootStateMaking { context })
        .await;
}

impl Reconciler<Shoot> for ShootStateMaking {
    const NAME: &'static str = "shoot-state-making";

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let namespace = shoot.namespace().unwrap_or_default();
        let (name, uid) = (shoot.name_any(), shoot.uid().unwrap_or_default());
        let states: Api<ShootState> = self.context.garden.namespaced(&namespace);
        let found = states
            .get_opt(&name)
            .await
            .context(format_args!("could not read ShootState {name}"))?;
        let Some(state) = found else {
            return make(&states, &shoot).await;
        };
        let is_mine = state.owner_references().iter().any(|owner| owner.uid == uid);
        if !is_mine || state.metadata.deletion_timestamp.is_some() {
            return Ok(Next::After(LOOK_AGAIN));
        }
        finalizer::ensure(&states, &state, FINALIZER).await?;
        self.empty_if_spent(&states, &state).await
    }

    /// It follows the Shoot by its owner reference.
    async fn cleanup(&self, _: Arc<Shoot>) -> Result<Next> {
        Ok(Next::Change)
    }
}

impl ShootStateMaking {
    /// The Shoot is read after the ShootState, and the write is for the ShootState that was read: a seed that begins to fill
    /// it has recorded a migration before, and is either seen or in the way of the write.
    async fn empty_if_spent(&self, states: &Api<ShootState>, state: &ShootState) -> Result<Next> {
        if state.spec == ShootStateSpec::default() {
            return Ok(Next::Change);
        }
        let name = state.name_any();
        let shoots: Api<Shoot> = self
            .context
            .garden
            .namespaced(&state.namespace().unwrap_or_default());
        let shoot = shoots
            .get_opt(&name)
            .await
            .context(format_args!("could not read Shoot {name}"))?;
        if shoot.is_some_and(|shoot| is_spent(&shoot)) {
            let body = json!({
                "metadata": {"resourceVersion": state.resource_version()},
                "spec": {"gardener": null, "extensions": null, "resources": null},
            });
            MANAGER.merge(states, &name, &body).await?;
        }
        Ok(Next::Change)
    }
}

async fn make(states: &Api<ShootState>, shoot: &Shoot) -> Result<Next> {
    let mut state = ShootState::new(&shoot.name_any(), ShootStateSpec::default());
    state.metadata.namespace = shoot.namespace();
    state.metadata.finalizers = Some(vec![FINALIZER.to_owned()]);
    state.metadata.owner_references = shoot.controller_owner_ref(&()).map(|owner| vec![owner]);
    let params = PostParams {
        field_manager: Some(MANAGER.0.to_owned()),
        ..PostParams::default()
    };
    match states.create(&params, &state).await {
        Ok(_) => Ok(Next::Change),
        Err(kube::Error::Api(answer)) if answer.is_already_exists() => Ok(Next::After(LOOK_AGAIN)),
        Err(error) => Err(error).context("could not make the ShootState"),
    }
}
