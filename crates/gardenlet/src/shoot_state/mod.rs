//! ShootState: what of a shoot must survive its seed (R7-20..R7-27).
//!
//! It is collected by the source seed while a move is prepared, once more after each later step that may have written
//! state (RX-11), and read by the destination. It is deleted only after the restore is recorded as succeeded.

mod collect;

use crate::MANAGER;
use api::{
    constants::finalizer::SHOOT_STATE,
    gardencore::{Shoot, ShootState},
};
use botanist::Botanist;
use k8s_openapi::api::core::v1::Secret;
use kube::{ResourceExt, api::ListParams};
use runtime::{Cluster, Garden, Result, apply, clock, finalizer};

/// Selects the secrets that must be carried (R7-10, RX-21).
const CARRIED: &str = "persist=true";

/// Writes what the namespace holds into the ShootState. What was collected earlier and is not in the namespace any more
/// (an extension resource that is migrated and gone) stays as it was.
pub async fn persist(b: &Botanist) -> Result<()> {
    let states: kube::Api<ShootState> = b.garden.namespaced(&namespace(&b.shoot));
    let secrets = b
        .seed
        .namespaced::<Secret>(&b.namespace)
        .list(&ListParams::default().labels(CARRIED))
        .await?;
    let extensions = b.extension_states().await?;
    let referenced = collect::referenced(&b.seed, &b.namespace, &extensions).await?;
    let before = states.get_opt(&b.shoot.name_any()).await?;
    let spec = collect::merge(
        before.map(|state| state.spec),
        &secrets.items,
        &extensions,
        referenced,
    )?;
    let state = collect::object(&b.shoot, spec, &clock::now().to_string());
    MANAGER.apply(&states, &state).await.map(|_| ())
}

/// Deletes the ShootState of the botanist's Shoot.
pub async fn delete(b: &Botanist) -> Result<()> {
    delete_of(&b.garden, &b.shoot).await
}

/// Deletes the ShootState of a Shoot whose last operation is recorded as finished.
pub async fn delete_of(garden: &Garden, shoot: &Shoot) -> Result<()> {
    let states: kube::Api<ShootState> = garden.namespaced(&namespace(shoot));
    let Some(state) = states.get_opt(&shoot.name_any()).await? else {
        return Ok(());
    };
    apply::delete(&states, &state.name_any()).await?;
    finalizer::remove(&states, &state, SHOOT_STATE).await
}

fn namespace(shoot: &Shoot) -> String {
    shoot.namespace().unwrap_or_default()
}
