//! Workers, for any provider: it says what a machine of a pool is in its cloud and which program makes
//! machines there ([`Machines`], two functions without `async`, and a third for zones that can be cut off);
//! what has to be done with machine objects is here, once.
//!
//! Promises
//! - `reconcile`: for each pool and zone a MachineDeployment and a MachineClass with its Secret, whose names
//!   stay while pool and zone stay; machines are replaced when the class gets another name ([`wanted`]), and
//!   only then. The program runs with rights in the shoot's namespace only. `status.machineDeployments` is
//!   written before machines are awaited.
//! - `migrate`: the program goes, and no pod of it is left (I3). Machine objects stay: whoever persists the
//!   shoot's state reads it from them, and a move can be called off until the hand-over; the gardenlet
//!   removes them after it, without anybody acting on it (RX-22). Nothing outside is touched.
//! - `restore`: what is in `status.state` ([`api::machine::state`]) is made before the program starts
//!   (gardener#8742), under the names it had, all machines of a set (gardener#5471); nothing that is there is
//!   overwritten. A program that runs nevertheless is scaled to 0 before, not deleted (gardener#3520). A
//!   state is made once: what the program has done since is not undone by a second call. Then it is a plain
//!   reconcile. Where nothing is said of machines, not even that there were none, it is refused: a Worker
//!   that begins empty makes new machines and loses the old.
//! - `delete`: machines are told to go without waiting for their Nodes, then the program takes them away,
//!   then goes itself.
//!
//! A zone may be cut off (`spec.isolatedZoneID`, [`isolation`]): no machine stays in it, and pools grow
//! elsewhere. The Worker is ready when the zone is empty, or at the [`close_deadline`], whatever is left;
//! [`rollout`] reports machines elsewhere that are not ready.
//!
//! `status.state` is used up by a restore and is empty otherwise: machine objects are the state, and carried
//! twice they were too much (gardener#12579).

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

/// Looks after Workers.
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

/// A former state would make machines that are gone by now.
fn without_state() -> Outcome {
    Outcome {
        state: Some(RawExtension(Value::Null)),
        ..Outcome::none()
    }
}
