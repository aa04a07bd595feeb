//! The interface between the controllers and a cloud. A driver implements `create`, `delete`, `status` and
//! `list`. Two functions are optional: `power` reports whether an instance runs, and `launch_failure` reports
//! why the cloud has ended a new instance. The controllers keep machines alive during a move without help of
//! the driver.
//!
//! Promises of the controllers to a driver
//! - Each call runs under the permit of the process (I3): a driver makes no request outside a call, and
//!   starts no task.
//! - `create` is called only for a Machine of which `status` has just reported that there is no instance, and
//!   never for a Machine that has had a provider id (R7-03). Calls for the same Machine never overlap.
//! - Each call is bounded in time ([`crate::Timing::driver_answers_within`]) and may be dropped at any await.
//!
//! Promises of a driver
//! - Every instance carries the Machine's name and the cluster's identity as tags, from the very request that
//!   creates the instance.
//! - A failure that does not pass without a change is a [`runtime::Error::Config`] with the codes that fit. A
//!   refusal for want of quota or capacity is included. The Machine's `lastOperation` shows the codes and the
//!   message.

use std::time::Duration;

use api::machine::{Machine, MachineClass};
use async_trait::async_trait;
use runtime::{Error, Result, client::Credentials};

/// The object of a call, and the credentials for the call.
pub struct Request<'a> {
    /// The Machine. For an orphan that is collected: a Machine with only the name and the provider id.
    pub machine: &'a Machine,
    /// The MachineClass, with the fields that only the driver understands.
    pub class: &'a MachineClass,
    /// The Secret of the class's `credentialsSecretRef`; without this field, the Secret of `secretRef`.
    pub credentials: Credentials,
    /// The user data with all placeholders filled in. Only for [`Driver::create`].
    pub user_data: Option<String>,
    /// For how long the cloud has accepted [`Driver::delete`] and the instance has not gone, as far as this
    /// process knows. A driver may ask a hanging cloud more forcefully.
    pub ending_for: Duration,
}

/// An instance of a Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// The id at the provider, as the Node will have in `spec.providerID`.
    pub provider_id: String,
    /// The name under which the kubelet of the instance will register.
    pub node_name: String,
}

/// An instance that a listing found.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ListedInstance {
    /// The Machine's name, from the instance's tag.
    pub machine_name: String,
    /// The id of the instance at the provider.
    pub provider_id: String,
}

/// Whether an instance may still write to the attached volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstancePower {
    /// The provider reports that the instance runs or starts.
    Running,
    /// The provider reports that the instance is stopped or terminated, so that no process of the instance
    /// runs.
    Off,
    /// The provider reports neither: the instance is stopping, or the provider does not list the instance.
    Unclear,
}

/// A cloud.
#[async_trait]
pub trait Driver: Send + Sync + 'static {
    /// Creates the instance of a Machine. An instance that exists already is success, and is returned.
    ///
    /// # Errors
    /// The cloud refuses or does not answer.
    async fn create(&self, request: &Request<'_>) -> Result<Instance>;

    /// Deletes the instance of a Machine with all resources of the instance. An instance that is gone already
    /// is success.
    ///
    /// # Errors
    /// As for [`Driver::create`].
    async fn delete(&self, request: &Request<'_>) -> Result<()>;

    /// The instance of a Machine, found by the provider id or the tags. `None` only where the cloud has
    /// reported that there is no instance: an unknown state is an error.
    ///
    /// # Errors
    /// As for [`Driver::create`].
    async fn status(&self, request: &Request<'_>) -> Result<Option<Instance>>;

    /// Whether the instance runs. An instance that is reported as [`InstancePower::Off`] loses pods and
    /// volumes. So a driver reports `Off` only where the provider states explicitly that the instance is off,
    /// never for an instance that is not found.
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

    /// All instances that carry this cluster's tag, of any class. An incomplete list is an error.
    ///
    /// # Errors
    /// As for [`Driver::create`].
    async fn list(&self, class: &MachineClass, credentials: Credentials) -> Result<Vec<ListedInstance>>;
}
