//! What a cloud has to do for machines: four functions, and two for clouds that report whether an instance
//! runs, and why the cloud has ended a new instance. The author of a driver writes these functions alone. All
//! that keeps machines alive over a move is on this side of the trait.
//!
//! What the controllers promise to a driver
//! - Each call leaves by way of the permit of the process (I3): a driver makes no request of its own accord
//!   and starts no task.
//! - `create` is called only for a Machine of which `status` has just said that there is no instance, and
//!   never for one that has had a provider id (R7-03). Calls for one Machine never overlap.
//! - Each call is bounded in time ([`crate::Timing::driver_answers_within`]) and may be dropped at any await.
//!
//! What a driver promises
//! - Every instance carries the Machine's name and the cluster's identity as tags, from the very request that
//!   creates it.
//! - What cannot pass by itself is [`runtime::Error::Config`] with the codes that fit, a refusal for want of
//!   quota or capacity included: code and sentence are shown in the Machine's `lastOperation`.

use std::time::Duration;

use api::machine::{Machine, MachineClass};
use async_trait::async_trait;
use runtime::{Credentials, Error, Result};

/// What is asked for, and with whose rights.
pub struct Request<'a> {
    /// The Machine. For an orphan that is collected: one that has its name and its provider id and nothing
    /// else.
    pub machine: &'a Machine,
    /// Its class, with what only the driver understands.
    pub class: &'a MachineClass,
    /// The Secret of the class's `credentialsSecretRef`, or of its `secretRef` where that is missing.
    pub credentials: Credentials,
    /// What the machine runs at first, all placeholders filled in. Only for [`Driver::create`].
    pub user_data: Option<String>,
    /// For how long the cloud has accepted [`Driver::delete`] and the instance has not gone, as far as this
    /// process knows. A driver may ask a hanging cloud more forcefully.
    pub ending_for: Duration,
}

/// An instance of a Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its id at the provider, as the Node will have it in `spec.providerID`.
    pub provider_id: String,
    /// The name under which its kubelet will register.
    pub node_name: String,
}

/// An instance that a listing found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Found {
    /// The Machine's name, from the instance's tag.
    pub machine_name: String,
    /// Its id at the provider.
    pub provider_id: String,
}

/// Whether an instance may still write to its volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstancePower {
    /// The provider reports that the instance runs or starts.
    Running,
    /// The provider reports that the instance is stopped or terminated, so that no process of the instance
    /// runs.
    Off,
    /// The provider reports neither: the instance is stopping, or the provider does not list it.
    Unclear,
}

/// A cloud.
#[async_trait]
pub trait Driver: Send + Sync + 'static {
    /// Makes the instance of a Machine. One that is there already is success, and the same instance.
    ///
    /// # Errors
    /// The cloud refuses or does not answer.
    async fn create(&self, request: &Request<'_>) -> Result<Instance>;

    /// Takes the instance of a Machine away, with all that is its own. One that is gone already is success.
    ///
    /// # Errors
    /// As for [`Driver::create`].
    async fn delete(&self, request: &Request<'_>) -> Result<()>;

    /// The instance of a Machine, looked for by its provider id or its tags. `None` only where the cloud has
    /// said that there is none: what is not known is an error.
    ///
    /// # Errors
    /// As for [`Driver::create`].
    async fn status(&self, request: &Request<'_>) -> Result<Option<Instance>>;

    /// Whether the instance runs. An instance that is reported as [`InstancePower::Off`] loses its pods and
    /// volumes, so that a driver reports it only where the provider says so in words, never for an instance
    /// that is not found.
    ///
    /// # Errors
    /// As for [`Driver::create`].
    async fn power(&self, request: &Request<'_>) -> Result<InstancePower> {
        let _ = request;
        Ok(InstancePower::Unclear)
    }

    /// The error for which the cloud has ended the instance of a Machine that never joined; `None` while the
    /// instance starts or runs, or where the cloud lists no such instance. A cloud may accept a launch and
    /// end the instance a moment later.
    ///
    /// # Errors
    /// As for [`Driver::create`].
    async fn launch_failure(&self, request: &Request<'_>) -> Result<Option<Error>> {
        let _ = request;
        Ok(None)
    }

    /// All instances that carry this cluster's tag, whatever class they are of. Half a list is an error.
    ///
    /// # Errors
    /// As for [`Driver::create`].
    async fn list(&self, class: &MachineClass, credentials: Credentials) -> Result<Vec<Found>>;
}
