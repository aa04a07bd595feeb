//! Operations of a flow on a part of the control plane: deploy, sleep, destroy, migrate.
//!
//! Each verb is a pair: the work, and the wait for the effect. A flow names the part and gets both tasks. The
//! part declares for the verb the external systems of both tasks (`TOUCHES`, without a default). [`Migrate`]
//! has none, because a migration changes no external system. The parameter shows the inputs of a verb: all
//! [`Facts`] of the shoot, or only the [`Residency`] in this seed. The [`Residency`] also exists without the
//! Shoot. No verb exchanges a finding with further tasks. A task with such an exchange is a constant of the
//! part (`PartTask::exchanging`).
//!
//! Promises of every method: the method may run again at any time (I5), ends within a bound, and waits by
//! watching.

use std::future::Future;

use runtime::Result;

use crate::{
    Facts, Residency,
    task::{ExternalSystems, NONE, PartTask},
};

/// Names that operators see: the task that does the work, and the task that waits.
pub type Tasks = [&'static str; 2];

/// A part that can be deployed.
pub trait Deploy: 'static {
    /// See [`Tasks`].
    const TASKS: Tasks;
    /// The external systems that the work may change.
    const TOUCHES: ExternalSystems;
    /// Writes the desired state of the part.
    fn deploy(f: &Facts) -> impl Future<Output = Result<()>> + Send;
    /// Waits until the part has the desired state.
    fn ready(f: &Facts) -> impl Future<Output = Result<()>> + Send;

    /// The work and the wait, as tasks of a flow.
    #[must_use]
    fn deploy_tasks() -> [PartTask<Facts>; 2] {
        let [work, wait] = Self::TASKS;
        [
            PartTask::new(work, Self::TOUCHES, |f| Box::pin(Self::deploy(f))),
            PartTask::new(wait, Self::TOUCHES, |f| Box::pin(Self::ready(f))),
        ]
    }
}

/// A part that keeps all data while no process of the part runs (hibernation).
pub trait Sleep: 'static {
    /// See [`Tasks`].
    const TASKS: Tasks;
    /// The external systems that the work may change.
    const TOUCHES: ExternalSystems;
    /// Stops the part. A part that does not exist is created with zero replicas.
    fn sleep(f: &Facts) -> impl Future<Output = Result<()>> + Send;
    /// Waits until no process of the part runs any more.
    fn asleep(f: &Facts) -> impl Future<Output = Result<()>> + Send;

    /// The work and the wait, as tasks of a flow.
    #[must_use]
    fn sleep_tasks() -> [PartTask<Facts>; 2] {
        let [work, wait] = Self::TASKS;
        [
            PartTask::new(work, Self::TOUCHES, |f| Box::pin(Self::sleep(f))),
            PartTask::new(wait, Self::TOUCHES, |f| Box::pin(Self::asleep(f))),
        ]
    }
}

/// A part that can be removed.
pub trait Destroy: 'static {
    /// See [`Tasks`].
    const TASKS: Tasks;
    /// The external systems that the work may change.
    const TOUCHES: ExternalSystems;
    /// Requests the removal of the part. A part that is already gone is a success.
    fn destroy(residency: &Residency) -> impl Future<Output = Result<()>> + Send;
    /// Waits until the part is gone.
    fn gone(residency: &Residency) -> impl Future<Output = Result<()>> + Send;

    /// The work and the wait, as tasks of a flow.
    #[must_use]
    fn destroy_tasks() -> [PartTask<Residency>; 2] {
        let [work, wait] = Self::TASKS;
        [
            PartTask::new(work, Self::TOUCHES, |residency| {
                Box::pin(Self::destroy(residency))
            }),
            PartTask::new(wait, Self::TOUCHES, |residency| Box::pin(Self::gone(residency))),
        ]
    }
}

/// A part that a provider manages. The provider can release the part, so that a different seed takes over.
/// The tasks change no external system.
pub trait Migrate: 'static {
    /// See [`Tasks`].
    const TASKS: Tasks;
    /// Requests a release by the provider without any change outside the seed (I9).
    fn migrate(residency: &Residency) -> impl Future<Output = Result<()>> + Send;
    /// Waits until the provider has released the part.
    fn migrated(residency: &Residency) -> impl Future<Output = Result<()>> + Send;

    /// The work and the wait, as tasks of a flow.
    #[must_use]
    fn migrate_tasks() -> [PartTask<Residency>; 2] {
        let [work, wait] = Self::TASKS;
        [
            PartTask::new(work, NONE, |residency| Box::pin(Self::migrate(residency))),
            PartTask::new(wait, NONE, |residency| Box::pin(Self::migrated(residency))),
        ]
    }
}
