//! ControlPlanes, for any provider: it says which processes and files its cloud needs beside a shoot's
//! control plane ([`ControlPlaneParts`], one function without `async`); how they come and how they go is
//! here, once.
//!
//! Promises
//! - `reconcile`: files are written before the processes that read them, and a pod is made anew when a Secret
//!   or a ConfigMap that it mounts changes. When it returns, every wanted pod serves, and every pod with
//!   flags or files of before was told to stop. What is not wanted any more goes after that: a pod that needs
//!   a file and is started again would not start.
//! - Of a shoot that is to sleep no pod is left once no kube-apiserver is wanted; its Deployments stay.
//! - `restore` is a plain reconcile: there is no state (RX-32).
//! - `migrate` and `delete` take all of it out of the seed (RX-20), and end when no pod is left (I3). Nothing
//!   outside is touched (I9): what the processes have made there is the shoot's.

mod parts;
mod removal;
mod rollout;

use api::extensions::ControlPlane;
use async_trait::async_trait;
use owner_checks::OwnerClaim;
use runtime::Result;

pub use parts::Parts;

use crate::{Actuator, Context, Outcome};

/// What a provider says of its ControlPlanes.
pub trait ControlPlaneParts: Send + Sync + 'static {
    /// Name of the controller in metrics, spans and logs.
    const NAME: &'static str = "controlplane";
    /// Names of all processes that it may ever want. Those that it does not want are taken away.
    const PROCESSES: &'static [&'static str];
    /// The same of ConfigMaps.
    const CONFIG_MAPS: &'static [&'static str];

    /// What is wanted now, from what the object says. `owner`: who must have the shoot, where the seed checks
    /// owners: processes that act without being asked are given its flags (R17-60).
    ///
    /// # Errors
    /// The object cannot be understood: [`runtime::Error::Config`].
    fn parts(&self, context: &Context<ControlPlane>, owner: Option<&OwnerClaim>) -> Result<Parts>;
}

/// Looks after ControlPlanes.
pub struct ControlPlaneActuator<P>(pub P);

#[async_trait]
impl<P: ControlPlaneParts> Actuator<ControlPlane> for ControlPlaneActuator<P> {
    const NAME: &'static str = P::NAME;

    async fn reconcile(&self, context: &Context<ControlPlane>) -> Result<Outcome> {
        let owner = context.cluster.as_ref().map_or(Ok(None), OwnerClaim::of)?;
        let parts = self.0.parts(context, owner.as_ref())?;
        parts.check(P::PROCESSES, P::CONFIG_MAPS)?;
        let [processes, config_maps] = parts.stale(P::PROCESSES, P::CONFIG_MAPS);
        Box::pin(rollout::roll_out(context, &parts)).await?;
        let namespace = context.namespace()?;
        Box::pin(removal::remove(
            &context.seed,
            &namespace,
            &processes,
            &config_maps,
        ))
        .await?;
        Ok(Outcome::none())
    }

    async fn restore(&self, context: &Context<ControlPlane>) -> Result<Outcome> {
        self.reconcile(context).await
    }

    async fn migrate(&self, context: &Context<ControlPlane>) -> Result<Outcome> {
        self.delete(context).await.map(|()| Outcome::none())
    }

    async fn delete(&self, context: &Context<ControlPlane>) -> Result<()> {
        let namespace = context.namespace()?;
        Box::pin(removal::remove(
            &context.seed,
            &namespace,
            P::PROCESSES,
            P::CONFIG_MAPS,
        ))
        .await
    }
}

#[cfg(test)]
#[path = "control_plane/tests.rs"]
mod tests;
