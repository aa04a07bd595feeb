//! Creates missing ShootStates.

use std::{sync::Arc, time::Duration};

use api::{
    gardencore::{Shoot, ShootState, ShootStateSpec},
    meta::ErrorCode,
};
use kube::{
    Api, Resource, ResourceExt,
    api::PostParams,
    runtime::{reflector::ObjectRef, watcher},
};
use runtime::{
    Error, Result,
    client::Cluster,
    clock,
    controller::{Next, Reconciler, finalizer},
    error::Explain as _,
};

use super::{
    owner::{StateOwnership, report, state_ownership},
    protection::FINALIZER,
    seen::StateMeta,
};
use crate::{Context, MANAGER};

/// Requeue interval after a concurrent creation of the ShootState.
const CONFLICT_REQUEUE: Duration = Duration::from_secs(2);

struct ShootStateMaking {
    context: Context,
}

/// Runs the controller until shutdown.
pub(super) async fn run(context: Context) {
    let states: Api<StateMeta> = context.garden.all();
    let controller =
        context
            .shoots
            .controller(|_| None)
            .watches(states, watcher::Config::default(), |state| {
                let namespace = state.namespace()?;
                Some(ObjectRef::new(&state.name_any()).within(&namespace))
            });
    context
        .run(controller, |context| ShootStateMaking { context })
        .await;
}

impl Reconciler<Shoot> for ShootStateMaking {
    const NAME: &'static str = "shoot-state-making";

    async fn apply(&self, shoot: Arc<Shoot>) -> Result<Next> {
        let namespace = shoot.namespace().unwrap_or_default();
        let name = shoot.name_any();
        let states: Api<StateMeta> = self.context.garden.namespaced(&namespace);
        let found = states
            .get_opt(&name)
            .await
            .context(format_args!("could not read ShootState {name}"))?;
        let Some(state) = found else {
            return make(&self.context.garden.namespaced(&namespace), &shoot).await;
        };
        // ShootStates are watched, so a change wakes this controller.
        match state_ownership(&state, &shoot, clock::now()) {
            StateOwnership::Owned => {
                finalizer::ensure(&states, &state, FINALIZER).await?;
            }
            StateOwnership::Leaving => {}
            StateOwnership::Collected(within) => return Ok(Next::After(within)),
            StateOwnership::NotOwned => return Err(self.report(&shoot).await),
        }
        Ok(Next::Change)
    }

    /// The owner reference deletes the ShootState with the Shoot.
    async fn cleanup(&self, _: Arc<Shoot>) -> Result<Next> {
        Ok(Next::Change)
    }
}

impl ShootStateMaking {
    /// Reports a ShootState that no seed may use. The Event has a reason of its own, because the API server
    /// keeps the first note of Events with the same reason.
    async fn report(&self, shoot: &Shoot) -> Error {
        let why = report(shoot);
        let events = &self.context.events;
        events
            .answer_with_warning(shoot, "ShootStateNotOwned", &why)
            .await;
        Error::config(ErrorCode::ErrConfigurationProblem, why)
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
        Err(kube::Error::Api(answer)) if answer.is_already_exists() => Ok(Next::After(CONFLICT_REQUEUE)),
        Err(error) => Err(error).context("could not make the ShootState"),
    }
}
