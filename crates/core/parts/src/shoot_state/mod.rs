//! ShootState: the state of a shoot that must survive the seed (R7-20..R7-28). Only this module writes and
//! reads the ShootState.
//!
//! Garden-controller-manager creates an empty ShootState, which lives as long as the Shoot. The seed that has
//! the shoot keeps the ShootState up to date ([`ShootState::sync`], R7-42). In a move, this seed writes the
//! ShootState, and again after each later step that may have written state (RX-11). The seed that takes over
//! the shoot reads the ShootState. No seed creates or deletes a ShootState. Only content that passes
//! `carried::Check` is collected and applied, beside the keys of the shoot. A seed with an earlier epoch
//! than the last writer writes nothing. Small content is stored in the ShootState in readable form; content
//! above 1 MiB is stored in InternalSecrets that the ShootState references. Details:
//! docs/understand/shoot-state.md.
//!
//! | file | content |
//! |---|---|
//! | `carried` | the permitted content: a single check for collection and restore |
//! | `collect` | collects the pieces from the namespace of the shoot |
//! | `piece` | a piece of the state, and the order of pieces |
//! | `own` | the own Secrets of the gardenlet: the keys of the shoot; `entries` converts Secrets |
//! | `content` | the objects that states of extensions refer to |
//! | `unfit` | state that no further seed can restore |
//! | `left_out` | constraint `ShootStateComplete`; `sentences`: bounded texts |
//! | `overlay` | merges the present pieces with the earlier pieces |
//! | `writer` | writes pieces into the ShootState, or into chunks; `float_bytes`: the bytes of floats |
//! | `place` | the ShootState and the InternalSecrets of a shoot |
//! | `chunk` | splits a text into chunks; `chunk_name`: names and owners of chunks |
//! | `leftovers` | deletes chunks that are no longer needed |
//! | `opened` | reads a verified ShootState |
//! | `verified` | the pieces that a restore may apply |
//! | `restore_limit` | the size of the whole state that a seed restores |

mod carried;
mod chunk;
mod chunk_name;
mod collect;
mod content;
mod entries;
mod float_bytes;
pub mod left_out;
mod leftovers;
mod opened;
mod overlay;
mod own;
mod piece;
mod place;
mod restore_limit;
mod sentences;
mod unfit;
mod verified;
mod writer;

use std::{sync::Arc, time::Duration};

use api::{
    constants,
    gardencore::{self, ShootStatus},
};
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{
    Error, Result,
    client::{Cluster, Garden},
    error::Explain,
};

pub(crate) use carried::is_created_by_seed;
pub use content::content;
pub(crate) use content::{Referenced, referenced};
pub use entries::{ENTRY_TYPE, from_shoot_state, is_carried, to_shoot_state};
pub(crate) use opened::Opened;
pub use opened::ShootStateCache;
pub use writer::ShootStateWrite;

use self::{
    opened::Pieces,
    overlay::Overlay,
    place::StateStore,
    unfit::Unfit,
    writer::{Unwritten, Writer},
};
use crate::{
    Facts, NamespaceState, Residency,
    secrets::config,
    task::{NONE, PartTask},
};

/// Requeue interval while the ShootState is missing, and after collisions. A running
/// garden-controller-manager creates the ShootState within a second.
const MISSING_SHOOT_STATE_REQUEUE: Duration = Duration::from_secs(5);
/// Requeue interval for an incomplete namespace: the remedy needs a user or a different process.
const INCOMPLETE: Duration = Duration::from_secs(60);
/// Most collisions in a row. There are two writers: a flow, and the continuous sync.
const ATTEMPTS: usize = 5;

/// The part for the state that moves with the shoot.
#[derive(Debug)]
pub struct ShootState;

impl ShootState {
    /// [`Self::check`], as a task.
    pub const CHECK: PartTask<Facts> = PartTask::new(
        "Checking that the state of the shoot can be carried",
        NONE,
        |input| Box::pin(Self::check(input)),
    );
    /// [`Self::persist`], as a task.
    pub const PERSIST: PartTask<Facts> =
        PartTask::new("Persisting ShootState in garden cluster", NONE, |input| {
            Box::pin(Self::persist(input))
        });
    /// [`Self::persist`], as a task.
    pub const PERSIST_LATE: PartTask<Facts> =
        PartTask::new("Persisting late state in ShootState", NONE, |input| {
            Box::pin(Self::persist(input))
        });

    /// "Persisting ShootState in garden cluster": writes the state of the namespace into the ShootState.
    /// Entries of earlier collections stay where the namespace no longer has the object, such as an extension
    /// resource that was migrated and deleted.
    ///
    /// State that appeared after [`Self::check`] and that no seed could restore is left out. The constraint
    /// `ShootStateComplete` of the Shoot names this state. An error here would stop the move while the
    /// shoot's API is down.
    pub async fn persist(f: &Facts) -> Result<()> {
        let write = write_state(&f.garden, &f.residency, &f.shoot, true).await?;
        left_out::report(f, &write.left_out).await
    }

    /// "Checking that the state of the shoot can be carried": fails for state that no destination could
    /// restore. Runs before the move has stopped a process. Makes no write.
    pub async fn check(f: &Facts) -> Result<()> {
        restore_limit::check_declared(&f.garden, &f.shoot, f.residency.settings.shoot_state_limit).await?;
        match collect::collect(&f.residency, None, &mut Unfit::Refused).await {
            Ok(()) => Ok(()),
            Err(Unwritten::Failed(error)) => Err(error),
            Err(Unwritten::Collided) => Err(Error::bug("a check of the state has written")),
        }
    }

    /// Makes the ShootState equal to the state of the namespace, and removes all further entries (R7-42).
    /// Only for a shoot that is complete and settled in this seed, because missing objects are dropped. Fails
    /// without a write when the namespace lacks a key of the shoot. State that no other seed can restore is
    /// left out, and named in the result.
    pub async fn sync(
        garden: &Garden,
        residency: &Residency,
        shoot: &gardencore::Shoot,
    ) -> Result<ShootStateWrite> {
        if residency.namespace_state().await? != NamespaceState::Active {
            return Err(incomplete(residency, "it is not there, or being deleted"));
        }
        let secrets: Api<Secret> = residency.seed.namespaced(&residency.namespace);
        let carried = ListParams::default().labels(&format!("{}=true", constants::PERSIST));
        let found = secrets
            .list_metadata(&carried)
            .await
            .context("could not list carried Secrets")?;
        let is_there = |name: &&str| found.items.iter().any(|secret| secret.name_any() == **name);
        if let Some(missing) = config::CARRIED.iter().find(|name| !is_there(name)) {
            return Err(incomplete(residency, &format!("Secret {missing} is not there")));
        }
        write_state(garden, residency, shoot, false).await
    }
}

impl ShootState {
    /// The whole content of the ShootState, verified, from the object or from chunks. For tools and tests:
    /// the memory use equals the size of the state.
    pub async fn whole(f: &Facts) -> Result<Option<gardencore::ShootStateSpec>> {
        match f.shoot_state().await? {
            Some(opened) => opened.whole().await.map(Some),
            None => Ok(None),
        }
    }
}

fn incomplete(residency: &Residency, why: &str) -> Error {
    Error::not_ready(
        INCOMPLETE,
        format!(
            "namespace {} does not hold the whole shoot ({why}): its ShootState stays as it is",
            residency.namespace
        ),
    )
}

/// `overlay`: entries of the ShootState stay where the namespace has no newer entry.
async fn write_state(
    garden: &Garden,
    residency: &Residency,
    shoot: &gardencore::Shoot,
    overlay: bool,
) -> Result<ShootStateWrite> {
    let place = StateStore::new(garden, &shoot.namespace().unwrap_or_default(), &shoot.name_any());
    for _ in 0..ATTEMPTS {
        match Box::pin(try_write_state(&place, residency, shoot, overlay)).await {
            Ok(write) => return Ok(write),
            Err(Unwritten::Failed(error)) => return Err(error),
            Err(Unwritten::Collided) => {}
        }
    }
    Err(Error::not_ready(
        MISSING_SHOOT_STATE_REQUEUE,
        format!(
            "ShootState {} is written by somebody else all the time",
            place.name
        ),
    ))
}

async fn try_write_state(
    place: &StateStore,
    residency: &Residency,
    shoot: &gardencore::Shoot,
    overlay: bool,
) -> Result<ShootStateWrite, Unwritten> {
    let found = place.state(&shoot.uid().unwrap_or_default()).await?;
    let state = found.ok_or_else(|| {
        Error::not_ready(
            MISSING_SHOOT_STATE_REQUEUE,
            format!(
                "garden-controller-manager has not made ShootState {} of this Shoot yet",
                place.name
            ),
        )
    })?;
    let chunks = state.spec.in_chunks.clone();
    let before = overlay.then(|| Pieces::new(place.clone(), state.clone(), chunks));
    let epoch = shoot.status.as_ref().map_or(1, ShootStatus::epoch);
    let mut pieces = Overlay::new(Writer::new(place.clone(), state, epoch)?, before).await?;
    let mut unfit = Unfit::LeftOut(Vec::new());
    collect::collect(residency, Some(&mut pieces), &mut unfit).await?;
    let mut write = pieces.finish().await?;
    let mut left_out = unfit.into_left_out();
    left_out.append(&mut write.left_out);
    Ok(ShootStateWrite { left_out, ..write })
}

impl Facts {
    /// The ShootState of this Shoot, if the ShootState exists. A key of the shoot that cannot be restored is
    /// an error: then no entry may be applied. Each further piece is verified, and stops only its reader.
    pub(crate) async fn shoot_state(&self) -> Result<Option<Arc<Opened>>> {
        let place = StateStore::new(&self.garden, &self.shoot_namespace(), &self.shoot.name_any());
        let Some(state) = place.state(&self.shoot.uid().unwrap_or_default()).await? else {
            return Ok(None);
        };
        if let Some(opened) = self.shoot_state_cache.find_opened(&state) {
            return Ok(Some(opened));
        }
        let limit = restore_limit::of_operation(self.operation, self.residency.settings.shoot_state_limit);
        let opened = Arc::new(Opened::open(place, state, limit).await?);
        opened.check_keys()?;
        if opened.is_readable() {
            self.shoot_state_cache.keep_opened(&opened);
        }
        Ok(Some(opened))
    }
}
