//! Machine objects in the source seed. They are removed without anybody acting on it: the machines themselves
//! move with the shoot (RX-22, I4). Their content is in the ShootState by then.

use futures::future::try_join_all;
use kube::{
    ResourceExt,
    api::PropagationPolicy,
    core::{ApiResource, GroupVersionKind},
};
use runtime::{Result, wait};

use crate::{
    Stay, dynamic,
    verbs::{Destroy, Tasks},
};

/// From the one that makes others to those that are made; the classes last, as machines refer to them.
const KINDS: [(&str, &str); 4] = [
    ("MachineDeployment", "machinedeployments"),
    ("MachineSet", "machinesets"),
    ("Machine", "machines"),
    ("MachineClass", "machineclasses"),
];

/// The objects of all kinds of machines.
#[derive(Debug)]
pub struct MachineResources;

impl Destroy for MachineResources {
    const TASKS: Tasks = [
        "Shallow-deleting machine resources from the Shoot namespace",
        "Waiting until machine resources have been deleted",
    ];

    /// No machine controller may run any more.
    async fn destroy(stay: &Stay) -> Result<()> {
        for kind in kinds() {
            let api = stay.any_api(&kind);
            for object in dynamic::list(&api, &kind).await? {
                dynamic::strip_finalizers(&api, &kind, &object).await?;
                dynamic::delete(&api, &kind, &object.name_any(), Some(PropagationPolicy::Orphan)).await?;
                // Deleting with orphans puts a finalizer of its own there, which the garbage collector takes
                // away.
            }
        }
        Ok(())
    }

    async fn gone(stay: &Stay) -> Result<()> {
        let timeout = stay.settings.timeouts.worker.timeout;
        for kind in kinds() {
            let api = stay.any_api(&kind);
            let all = dynamic::list(&api, &kind).await?;
            let names: Vec<_> = all.iter().map(ResourceExt::name_any).collect();
            try_join_all(names.iter().map(|name| wait::until_gone(&api, name, timeout))).await?;
        }
        Ok(())
    }
}

/// In the order of their deletion.
pub(crate) fn kinds() -> [ApiResource; 4] {
    KINDS.map(|(kind, plural)| {
        ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk("machine.sapcloud.io", "v1alpha1", kind),
            plural,
        )
    })
}
