//! ShootState: what of a shoot must survive its seed (R7-20..R7-27), written and read here and nowhere else.
//!
//! Garden-controller-manager makes it, empty, and empties it when a restore is recorded as succeeded. The source seed fills
//! it while a move is prepared, once more after each later step that may have written state (RX-11); the destination reads
//! it. No seed makes or deletes one. What passes [`carried::check`] is collected, and nothing else is applied.

pub mod carried;
mod collect;
mod content;
mod entries;

use std::time::Duration;

use api::{constants::TIMESTAMP, gardencore};
use kube::{Api, ResourceExt};
use runtime::{Cluster, Error, Result, clock, error::Explain};
use serde_json::json;

pub use content::content;
pub(crate) use content::{Referenced, referenced};
pub(crate) use entries::find;
pub use entries::{ENTRY_TYPE, from_shoot_state, is_carried, to_shoot_state};

use crate::{FIELD_MANAGER, Facts};

/// When a ShootState that is not there is looked for again. It is made within a second, unless nobody makes any.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// What is carried.
#[derive(Debug)]
pub struct ShootState;

impl ShootState {
    /// "Persisting ShootState in garden cluster": writes what the namespace holds into it. What was collected earlier and is not
    /// in the namespace any more (an extension resource that is migrated and gone) stays as it was.
    pub async fn persist(f: &Facts) -> Result<()> {
        let states = states(f);
        let name = f.shoot.name_any();
        let found = states
            .get_opt(&name)
            .await
            .context("could not read the ShootState")?;
        let Some(mut state) = found.filter(|state| is_of(state, f)) else {
            return Err(Error::not_ready(
                LOOK_AGAIN,
                format!("garden-controller-manager has not made ShootState {name} of this Shoot yet"),
            ));
        };
        let secrets = f.carried_secrets().await?;
        let extensions = f.extension_states().await?;
        let referenced = collect::referenced(&f.seed, &f.namespace, &extensions).await?;
        state.spec = collect::merge(std::mem::take(&mut state.spec), &secrets, &extensions, referenced)?;
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
        FIELD_MANAGER.merge(&states, &name, &body).await.map(drop)
    }
}

impl Facts {
    /// The ShootState, if there is one. One that holds what no seed collects is an error: nothing of it may be applied.
    pub(crate) async fn shoot_state(&self) -> Result<Option<gardencore::ShootState>> {
        let state = states(self).get_opt(&self.shoot.name_any()).await;
        let state = state.context("could not read the ShootState")?;
        state.as_ref().map(carried::check).transpose()?;
        Ok(state)
    }
}

fn states(f: &Facts) -> Api<gardencore::ShootState> {
    f.garden.namespaced(&f.shoot_namespace())
}

/// One that is left of an earlier Shoot of the same name holds the keys of another cluster.
fn is_of(state: &gardencore::ShootState, f: &Facts) -> bool {
    let uid = f.shoot.uid().unwrap_or_default();
    state.owner_references().iter().any(|owner| owner.uid == uid)
}
