//! ControlPlanes, for any provider. The provider returns the processes and files that the cloud needs beside
//! a shoot's control plane ([`ControlPlaneParts`], a function without `async`). This module deploys and
//! removes the processes and files, for all providers.
//!
//! Promises
//! - `reconcile`: files are written before the processes that read the files. A pod is recreated when a
//!   mounted Secret or ConfigMap changes. On return, every wanted pod serves, and every pod with former flags
//!   or files is terminating. Unwanted objects are removed afterwards: a restarted pod would not start
//!   without a file that the pod mounts.
//! - For a shoot with hibernation, no pod is left once no kube-apiserver is wanted; the Deployments stay.
//! - `restore` is a plain reconcile: there is no state (RX-32).
//! - `migrate` and `delete` remove all objects from the seed (RX-20), and end when no pod is left (I3).
//!   Outside resources are not touched (I9): the resources of the processes belong to the shoot.

mod parts;
mod removal;
mod rollout;

use api::extensions::ControlPlane;
use async_trait::async_trait;
use owner_checks::OwnerClaim;
use runtime::Result;

pub use parts::Parts;

use crate::{Actuator, Context, Outcome};

/// The ControlPlane parts of a provider.
pub trait ControlPlaneParts: Send + Sync + 'static {
    /// Name of the controller in metrics, spans and logs.
    const NAME: &'static str = "controlplane";
    /// Names of all possible processes. A process in this list that is not wanted is removed.
    const PROCESSES: &'static [&'static str];
    /// Names of all possible ConfigMaps. A ConfigMap in this list that is not wanted is removed.
    const CONFIG_MAPS: &'static [&'static str];

    /// The wanted parts, derived from the object. `owner`: the owner claim, where the seed checks owners.
    /// Processes that act unasked get the flags of the claim (R17-60).
    ///
    /// # Errors
    /// The object is invalid: [`runtime::Error::Config`].
    fn parts(&self, context: &Context<ControlPlane>, owner: Option<&OwnerClaim>) -> Result<Parts>;
}

/// Reconciles ControlPlanes.
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
