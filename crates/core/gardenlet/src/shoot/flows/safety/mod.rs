//! The safety of flows: a task may change an external system only while the seed is the owner of the shoot.
//!
//! The parts declare the external systems of each task, so no rule depends on the name of a task. The rules:
//!
//! - A seed that has or claims the shoot changes the cloud after phase `Held` (I3, R17-31), and also DNS if
//!   the source may still act. The seed changes the bucket after phase `Opening`, except for the preparation
//!   of the data (I2, R17-22..29).
//! - The source of a planned move changes all three before phase `Sealing`. The final snapshot follows when
//!   the owner record is gone (R17-50).
//! - A seed that prepares for a shoot of a different seed changes none of the three (I1, I3).
//! - A former seed changes the cloud and DNS after the release of all extension resources (RX-01, I9), and
//!   the bucket after the stop of all writers.
//! - A deletion changes all three before the owner record goes.
//!
//! In addition, a seed that has or claims the shoot writes the owner record before all further changes of an
//! external system (R17-21). The owner record is in DNS, and the rules name the tasks of the owner record.
//!
//! `xtask flows`, a step of `make check`, applies the rules to [`samples`] of all flows. The tests apply the
//! rules as well, and check further orders.

mod order;
pub mod samples;

#[cfg(test)]
mod tests;

use parts::{
    AllExtensions, BackupEntry, ClaimPlan, ClaimSteps, Departure, Deploy, Destroy, EndedEtcd, EtcdCopy,
    ExternalSystem, Migrate, OwnerRecord, PartTask, SourceBackupEntry, Writers,
};

pub use order::TaskOrder;

use super::ShootFlow;

/// The rights of the seed that runs a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowKind {
    /// The seed has the shoot, or takes these steps to get the shoot.
    Deploys(ClaimPlan),
    /// The seed prepares for a shoot that a different seed serves.
    Prepares,
    /// The seed hands the shoot over at the end of the flow.
    Migrates,
    /// The seed has handed the shoot over, or has lost the shoot.
    Leaves,
    /// The seed deletes the shoot.
    Deletes,
}

/// Applies the rules to a flow, and returns a sentence for each breach.
#[must_use]
pub fn breaches(kind: FlowKind, flow: &ShootFlow<'_>) -> Vec<String> {
    let order = TaskOrder::read(flow.flow());
    let touches = flow.touches();
    let touches = touches.flat_map(|(task, systems)| systems.iter().map(move |system| (task, *system)));
    let checked = touches.map(|(task, system)| {
        let checked = match kind {
            FlowKind::Deploys(claim) => check_deployment(&order, claim, task, system),
            FlowKind::Prepares => Err("a different seed serves the shoot".to_owned()),
            FlowKind::Migrates => check_migration(&order, task, system),
            FlowKind::Leaves => check_departure(&order, task, system),
            FlowKind::Deletes => check_deletion(&order, task),
        };
        checked.map_err(|breach| format!("{task:?} may change an external system ({system}), and {breach}"))
    });
    checked.filter_map(Result::err).collect()
}

fn check_deployment(
    order: &TaskOrder,
    claim: ClaimPlan,
    task: &str,
    system: ExternalSystem,
) -> Result<(), String> {
    let published = <OwnerRecord as Deploy>::TASKS;
    if published.contains(&task) {
        return Ok(());
    }
    let [_, published] = published;
    order.require([published, task])?;
    if <OwnerRecord as Destroy>::TASKS.contains(&task) {
        return Ok(());
    }
    let gate = match system {
        // A source that has handed the shoot over changes the names no more.
        ExternalSystem::Dns if !claim.fences() => return Ok(()),
        ExternalSystem::Bucket if prepares_data(task) => return Ok(()),
        ExternalSystem::Cloud | ExternalSystem::Dns => ClaimSteps::HOLD.name(),
        ExternalSystem::Bucket => ClaimSteps::OPEN.name(),
    };
    order.require([gate, task])
}

/// Whether the task prepares the data of etcd before an etcd opens the data: the claims in the buckets, the
/// copy, and the stop of the etcd of an ended epoch.
fn prepares_data(task: &str) -> bool {
    let tasks = [
        <SourceBackupEntry as Deploy>::TASKS,
        <BackupEntry as Deploy>::TASKS,
        [EtcdCopy::DEPLOY.name(), EtcdCopy::READY.name()],
        EndedEtcd::STOP.each_ref().map(PartTask::name),
    ];
    tasks.as_flattened().contains(&task)
}

fn check_migration(order: &TaskOrder, task: &str, system: ExternalSystem) -> Result<(), String> {
    let withdrawn = OwnerRecord::WITHDRAW.each_ref().map(PartTask::name);
    if withdrawn.contains(&task) {
        return order.require([Departure::SEAL.name(), task]);
    }
    let is_early = order.require([task, Departure::SEAL.name()]);
    let [_, withdrawn] = withdrawn;
    match system {
        ExternalSystem::Cloud | ExternalSystem::Dns => is_early,
        ExternalSystem::Bucket => is_early.or_else(|_| order.require([withdrawn, task])),
    }
}

fn check_departure(order: &TaskOrder, task: &str, system: ExternalSystem) -> Result<(), String> {
    let [_, released] = <AllExtensions as Migrate>::TASKS;
    let [_, stopped] = <Writers as Destroy>::TASKS;
    match system {
        ExternalSystem::Cloud | ExternalSystem::Dns => order.require([released, task]),
        ExternalSystem::Bucket => order.require([stopped, task]),
    }
}

fn check_deletion(order: &TaskOrder, task: &str) -> Result<(), String> {
    let [withdraw, gone] = <OwnerRecord as Destroy>::TASKS;
    if [withdraw, gone].contains(&task) {
        return Ok(());
    }
    order.require([task, withdraw])
}
