//! What is left of pools that a Shoot does not have any more.
//!
//! Of one pool it is what its machines ran at first: it goes when the Worker is done, since until then
//! machines of the pool may still be made from it. Of all pools it should not come to that, as admission
//! refuses to take the last one away; but objects may be left by hand or by another version, and machines
//! that nobody sees cost money. So a shoot without pools takes away whatever there is: its machines first,
//! while the network and all else that they need is still there. They go without a drain: no machine stays to
//! which their pods could go.

use api::extensions::OperatingSystemConfig;
use kube::ResourceExt;
use runtime::Result;

use super::{OperatingSystemConfigs, Workers, operating_system_config};
use crate::{
    ExtensionResource, Facts, Kinds, Stay,
    extension_kinds::OfKinds,
    verbs::{Destroy, Tasks},
};

/// What providers keep for nodes beside the machines.
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
}

impl Destroy for Workers {
    const TASKS: Tasks = [
        "Deleting machines that are not wanted",
        "Waiting until machines that are not wanted have been deleted",
    ];

    async fn destroy(stay: &Stay) -> Result<()> {
        Self::object(stay).delete().await
    }

    async fn gone(stay: &Stay) -> Result<()> {
        Self::object(stay).wait_until_deleted().await
    }
}

impl OperatingSystemConfigs {
    /// "Deleting stale operating system configurations": of pools that are not there any more. Their
    /// providers take the Secrets with user data away, which also hold what a machine joins with.
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
    ExtensionResource::meant(f, f.settings.timeouts.extension, is_stale).await
}
