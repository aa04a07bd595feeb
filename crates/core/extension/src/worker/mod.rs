//! Workers, for any provider. The provider describes a machine of a pool, and the machine-controller-manager
//! of the cloud. [`Machines`] has two functions without `async`, and a third for zones that can be isolated.
//! This module manages the machine objects, for all providers.
//!
//! Promises
//! - `reconcile`: creates a MachineDeployment and a MachineClass with a Secret for each pool and zone. The
//!   names stay while pool and zone stay. Machines are replaced only when the class gets a different name
//!   ([`wanted`]). The machine-controller-manager has rights in the shoot's namespace only.
//!   `status.machineDeployments` is written before the wait for machines.
//! - `migrate`: removes the machine-controller-manager, and waits until no pod is left (I3). Machine objects
//!   stay: the gardenlet reads the shoot's state from the objects, and a move can be cancelled until the
//!   hand-over. After the hand-over, the gardenlet removes the objects, and no controller acts on the objects
//!   (RX-22). No outside resource is touched.
//! - `restore`: creates the objects of `status.state` ([`api::machine::state`]) before the
//!   machine-controller-manager starts (gardener#8742). The objects get the former names, and all machines of
//!   a set are created (gardener#5471). Existing objects are not overwritten. A running
//!   machine-controller-manager is first scaled to 0, not deleted (gardener#3520). A state is created once: a
//!   second call does not undo later changes of the machine-controller-manager. Then `restore` is a plain
//!   reconcile. A restore without any state of machines is refused: a Worker that begins empty creates new
//!   machines and loses the old machines.
//! - `delete`: deletes the machines without waiting for their Nodes. The machine-controller-manager removes
//!   the instances, then the machine-controller-manager is removed.
//!
//! A zone may be isolated (`spec.isolatedZoneID`, [`isolation`]): no machine stays in the zone, and pools
//! grow elsewhere. The Worker is ready when the zone is empty, or at the [`close_deadline`], even with
//! remaining machines; [`rollout`] reports machines elsewhere that are not ready.
//!
//! `status.state` is consumed by a restore and is empty otherwise: machine objects are the state, and a
//! second copy was too large (gardener#12579).
//!
//! | file | content |
//! |---|---|
//! | `machines` | the trait of a provider |
//! | `wanted` | the wanted objects of each pool and zone; `Surroundings::size` has the number of machines |
//! | `names`, `spread` | names of deployments, and the share of each zone in the numbers of a pool |
//! | `write` | a reconcile: the order of writes, and the wait for machines |
//! | `health` | the machines that a wait reports, and the reasons |
//! | `restore` | the objects of a carried state |
//! | `cleanup` | the deletion of all machines |
//! | `manager` | the machine-controller-manager |
//! | `isolation` | an isolated zone: how much pools grow elsewhere, and the deployment that is left |
//! | `former_sizes` | the return of a zone: the sizes before the isolation |
//! | `close_deadline` | the end of the budget of a failover |
//! | `rollout` | the report of machines outside of an isolated zone that are not ready |

mod cleanup;
pub(crate) mod close_deadline;
mod former_sizes;
mod health;
pub(crate) mod isolation;
mod machines;
mod manager;
mod names;
mod restore;
mod rollout;
mod spread;
pub mod wanted;
mod write;

use api::{extensions::Worker, meta::RawExtension};
use async_trait::async_trait;
use runtime::Result;
use serde_json::Value;

pub use machines::{Class, Machines, Manager, cloud_profile_config};

use crate::{Actuator, Context, Outcome, Released};

/// Reconciles Workers.
pub struct WorkerActuator<M>(pub M);

#[async_trait]
impl<M: Machines> Actuator<Worker> for WorkerActuator<M> {
    const NAME: &'static str = M::NAME;

    async fn reconcile(&self, context: &Context<Worker>) -> Result<Outcome> {
        Box::pin(write::reconcile(&self.0, context)).await?;
        Ok(without_state())
    }

    async fn restore(&self, context: &Context<Worker>) -> Result<Outcome> {
        Box::pin(restore::restore(&self.0, context)).await?;
        self.reconcile(context).await
    }

    async fn migrate(&self, context: &Context<Worker>) -> Result<Outcome> {
        manager::remove(&context.seed, &context.namespace()?).await?;
        Ok(without_state())
    }

    async fn delete(&self, context: &Context<Worker>) -> Result<()> {
        Box::pin(cleanup::delete(&self.0, context)).await
    }

    async fn force_delete(&self, context: &Context<Worker>) -> Result<Released> {
        Box::pin(cleanup::force_delete(&self.0, context)).await
    }
}

/// A former state would recreate machines that are gone by now.
fn without_state() -> Outcome {
    Outcome {
        state: Some(RawExtension(Value::Null)),
        ..Outcome::none()
    }
}
