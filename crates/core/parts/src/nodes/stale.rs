//! Leftovers of pools that the Shoot no longer has.
//!
//! For a removed pool: the OperatingSystemConfig goes after the Worker is reconciled, because until then the
//! provider may still create machines of the pool. A removal of all pools should not occur, since admission
//! refuses to remove the last pool. But objects may be left by a user or a different version, and forgotten
//! machines cost money. So a shoot without pools deletes all such objects, machines first, while the network
//! and all needed objects still exist. The machines are deleted without a drain: no machine remains for the
//! pods.

use api::extensions::OperatingSystemConfig;
use kube::ResourceExt;
use runtime::Result;

use super::{OperatingSystemConfigs, Workers, operating_system_config};
use crate::{
    ExtensionResource, Facts, Kinds, Residency,
    extensions::kinds::OfKinds,
    task::{CLOUD, ExternalSystems, PartTask},
    verbs::{Destroy, Tasks},
};

/// Extension objects of nodes besides the machines.
#[derive(Debug)]
pub struct NodeExtensions;

impl OfKinds for NodeExtensions {
    const KINDS: Kinds = Kinds::Only(&["ContainerRuntime", "Network", "OperatingSystemConfig"]);
    const MIGRATION: Tasks = [
        "Migrating extension resources of nodes",
        "Waiting until extension resources of nodes have been migrated",
    ];
    const REMOVAL: Tasks = [
        "Deleting extension resources of nodes that are not wanted",
        "Waiting until extension resources of nodes have been deleted",
    ];
    const REMOVAL_TOUCHES: ExternalSystems = CLOUD;
}

impl Destroy for Workers {
    const TASKS: Tasks = [
        "Deleting machines that are not wanted",
        "Waiting until machines that are not wanted have been deleted",
    ];
    const TOUCHES: ExternalSystems = CLOUD;

    async fn destroy(residency: &Residency) -> Result<()> {
        Self::object(residency).delete().await
    }

    async fn gone(residency: &Residency) -> Result<()> {
        Self::object(residency).wait_until_deleted().await
    }
}

impl OperatingSystemConfigs {
    /// Tasks that delete stale objects.
    pub const DELETE_STALE: [PartTask<Facts>; 2] = [
        PartTask::new("Deleting stale operating system configurations", CLOUD, |f| {
            Box::pin(Self::delete_stale(f))
        }),
        PartTask::new(
            "Waiting until stale operating system configurations have been deleted",
            CLOUD,
            |f| Box::pin(Self::stale_gone(f)),
        ),
    ];

    /// "Deleting stale operating system configurations": objects of removed pools. The providers delete the
    /// Secrets with user data, which also hold the join credentials of a machine.
    pub async fn delete_stale(f: &Facts) -> Result<()> {
        ExtensionResource::delete_all(&stale(f).await?).await
    }

    /// "Waiting until stale operating system configurations have been deleted".
    pub async fn stale_gone(f: &Facts) -> Result<()> {
        ExtensionResource::all_deleted(&stale(f).await?).await
    }
}

async fn stale(f: &Facts) -> Result<Vec<ExtensionResource<'_, OperatingSystemConfig>>> {
    let pools = &f.shoot.spec.provider.workers;
    let wanted: Vec<_> = pools.iter().map(operating_system_config::name_of).collect();
    let is_stale = |object: &OperatingSystemConfig| !wanted.contains(&object.name_any());
    ExtensionResource::meant(&f.residency, f.residency.settings.timeouts.extension, is_stale).await
}
