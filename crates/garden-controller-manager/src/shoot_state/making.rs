//! Creates missing ShootStates.

use std::{sync::Arc, time::Duration};

use api::gardencore::{Shoot, ShootState, ShootStateSpec};
use kube::{
    Api, Resource, ResourceExt,
    api::PostParams,
    runtime::{reflector::ObjectRef, watcher},
};
use placement::its_place_alone;
use runtime::{Next, Reconciler, Result, clusters::Cluster, error::Explain as _, finalizer};

use super::{protection::FINALIZER, seen::StateMeta};
use crate::{Context, MANAGER, shoots};

/// Requeue interval while the ShootState of an earlier Shoot of the same name is being collected.
const COLLECTION_REQUEUE: Duration = Duration::from_secs(2);

struct ShootStateMaking {
    context: Context,
}

/// Runs the controller until shutdown.
pub(super) async fn run(context: Context) {
    let states: Api<StateMeta> = context.garden.all();
    let controller = shoots::controller(&context, its_place_alone, |_| None).watches(
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
        let states: Api<StateMeta> = self.context.garden.namespaced(&namespace);
        let found = states
            .get_opt(&name)
            .await
            .context(format_args!("could not read ShootState {name}"))?;
        let Some(state) = found else {
            return make(&self.context.garden.namespaced(&namespace), &shoot).await;
        };
        let is_mine = state.owner_references().iter().any(|owner| owner.uid == uid);
        if !is_mine || state.metadata.deletion_timestamp.is_some() {
            return Ok(Next::After(COLLECTION_REQUEUE));
        }
        finalizer::ensure(&states, &state, FINALIZER).await?;
        Ok(Next::Change)
    }

    /// The owner reference deletes the ShootState with the Shoot.
    async fn cleanup(&self, _: Arc<Shoot>) -> Result<Next> {
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
        Err(kube::Error::Api(answer)) if answer.is_already_exists() => Ok(Next::After(COLLECTION_REQUEUE)),
        Err(error) => Err(error).context("could not make the ShootState"),
    }
}
