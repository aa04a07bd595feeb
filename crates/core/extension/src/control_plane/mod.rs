//! ControlPlanes, for any provider. The provider returns the processes and files that the cloud needs beside
//! a shoot's control plane ([`ControlPlaneParts`], a function without `async`). This module deploys and
//! removes the processes and files, for all providers.
//!
//! Promises
//! - `reconcile`: the provider's Secrets are made before the first write. Credentials that the provider
//!   refuses change neither the former Secrets nor the processes.
//! - Files are written before the processes that read the files. A pod is recreated when a
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
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use owner_checks::OwnerClaim;
use runtime::{Error, Result};

pub use parts::Parts;
use removal::Names;

use crate::{Actuator, Context, Outcome};

/// The ControlPlane parts of a provider.
#[async_trait]
pub trait ControlPlaneParts: Send + Sync + 'static {
    /// Name of the controller in metrics, spans and logs.
    const NAME: &'static str = "controlplane";
    /// Names of all possible processes. A process in this list that is not wanted is removed.
    const PROCESSES: &'static [&'static str];
    /// Names of all possible ConfigMaps. A ConfigMap in this list that is not wanted is removed.
    const CONFIG_MAPS: &'static [&'static str];
    /// Names of all possible Secrets of the provider. A Secret in this list that is not wanted is removed.
    const SECRETS: &'static [&'static str] = &[];

    /// The wanted parts, derived from the object. `owner`: the owner claim, where the seed checks owners.
    /// Processes that act unasked get the flags of the claim (R17-60).
    ///
    /// # Errors
    /// The object is invalid: [`runtime::Error::Config`].
    fn parts(&self, context: &Context<ControlPlane>, owner: Option<&OwnerClaim>) -> Result<Parts>;

    /// The wanted Secrets of the provider, such as credentials that the provider has checked. After an error
    /// no object is written: the former Secrets and processes stay.
    ///
    /// # Errors
    /// The credentials are refused: [`runtime::Error::Config`].
    async fn secrets(&self, _context: &Context<ControlPlane>) -> Result<Vec<Secret>> {
        Ok(Vec::new())
    }
}

/// Reconciles ControlPlanes.
pub struct ControlPlaneActuator<P>(pub P);

#[async_trait]
impl<P: ControlPlaneParts> Actuator<ControlPlane> for ControlPlaneActuator<P> {
    const NAME: &'static str = P::NAME;

    async fn reconcile(&self, context: &Context<ControlPlane>) -> Result<Outcome> {
        let owner = context
            .cluster
            .as_ref()
            .map_or(Ok(None), OwnerClaim::from_cluster)?;
        let parts = self.0.parts(context, owner.as_ref())?;
        parts.check(P::PROCESSES, P::CONFIG_MAPS)?;
        let [processes, config_maps] = parts.stale(P::PROCESSES, P::CONFIG_MAPS);
        let secrets = self.0.secrets(context).await?;
        let stale_secrets = stale_secrets(&secrets, P::SECRETS)?;
        Box::pin(rollout::roll_out(context, &parts, &secrets)).await?;
        let stale = Names {
            processes: &processes,
            config_maps: &config_maps,
            secrets: &stale_secrets,
        };
        let namespace = context.namespace()?;
        Box::pin(removal::remove(&context.seed, &namespace, stale)).await?;
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
        let all = Names {
            processes: P::PROCESSES,
            config_maps: P::CONFIG_MAPS,
            secrets: P::SECRETS,
        };
        Box::pin(removal::remove(&context.seed, &namespace, all)).await
    }
}

/// The names in the list without a wanted Secret. Refuses a Secret that no cleanup would remove.
fn stale_secrets(wanted: &[Secret], all: &[&'static str]) -> Result<Vec<&'static str>> {
    let names: Vec<String> = wanted.iter().map(ResourceExt::name_any).collect();
    if let Some(unlisted) = names.iter().find(|name| !all.contains(&name.as_str())) {
        return Err(Error::bug(format!(
            "a ControlPlane wants the Secret {unlisted}, which the provider does not list: no cleanup would remove the Secret"
        )));
    }
    let is_wanted = |name: &&str| names.iter().any(|wanted| wanted == *name);
    Ok(all.iter().copied().filter(|name| !is_wanted(name)).collect())
}

#[cfg(test)]
mod tests;
