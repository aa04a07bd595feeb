//! ShootState: what of a shoot must survive its seed (R7-20..R7-27).
//!
//! Garden-controller-manager makes it, empty, and empties it when a restore is recorded as succeeded. The source seed fills
//! it while a move is prepared, once more after each later step that may have written state (RX-11); the destination reads
//! it. No seed makes or deletes one.

mod collect;

use std::time::Duration;

use crate::MANAGER;
use api::{constants::TIMESTAMP, gardencore::ShootState};
use k8s_openapi::api::core::v1::Secret;
use kube::{ResourceExt, api::ListParams};
use parts::{Facts, carried};
use runtime::{Cluster, Error, Result, clock};
use serde_json::json;

/// Selects the secrets that must be carried (R7-10, RX-21).
const CARRIED: &str = "persist=true";
/// When a ShootState that is not there is looked for again. It is made within a second, unless nobody makes any.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Writes what the namespace holds into the ShootState. What was collected earlier and is not in the namespace any more
/// (an extension resource that is migrated and gone) stays as it was.
pub async fn persist(f: &Facts) -> Result<()> {
    let states: kube::Api<ShootState> = f.garden.namespaced(&f.shoot.namespace().unwrap_or_default());
    let name = f.shoot.name_any();
    let found = states.get_opt(&name).await?;
    let Some(mut state) = found.filter(|state| is_of(state, f)) else {
        return Err(Error::not_ready(
            LOOK_AGAIN,
            format!("garden-controller-manager has not made ShootState {name} of this Shoot yet"),
        ));
    };
    let secrets = f
        .seed
        .namespaced::<Secret>(&f.namespace)
        .list(&ListParams::default().labels(CARRIED))
        .await?;
    let extensions = f.extension_states().await?;
    let referenced = collect::referenced(&f.seed, &f.namespace, &extensions).await?;
    state.spec = collect::merge(
        std::mem::take(&mut state.spec),
        &secrets.items,
        &extensions,
        referenced,
    )?;
    carried::check(&state)?;
    let body = json!({
        "metadata": {
            "resourceVersion": state.resource_version(),
            "annotations": {TIMESTAMP: clock::now().to_string()},
        },
        "spec": {
            "gardener": state.spec.gardener,
            "extensions": state.spec.extensions,
            "resources": state.spec.resources,
        },
    });
    MANAGER.merge(&states, &name, &body).await.map(drop)
}

/// One that is left of an earlier Shoot of the same name holds the keys of another cluster.
fn is_of(state: &ShootState, f: &Facts) -> bool {
    let uid = f.shoot.uid().unwrap_or_default();
    state.owner_references().iter().any(|owner| owner.uid == uid)
}
