//! Machine objects in the source seed. The objects are deleted without any action on the machines: the
//! machines move with the shoot (RX-22, I4). The ShootState already contains the objects.

use futures::future::try_join_all;
use kube::{
    ResourceExt,
    api::PropagationPolicy,
    core::{ApiResource, GroupVersionKind},
};
use runtime::{Result, client::wait};

use crate::{
    Residency,
    extensions::dynamic,
    task::{ExternalSystems, NONE},
    verbs::{Destroy, Tasks},
};

/// From owners to owned objects; the classes last, because machines refer to classes.
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
    const TOUCHES: ExternalSystems = NONE;

    /// No machine controller may run any more.
    async fn destroy(residency: &Residency) -> Result<()> {
        for kind in kinds() {
            let api = residency.any_api(&kind);
            for object in dynamic::list(&api, &kind).await? {
                dynamic::strip_finalizers(&api, &kind, &object).await?;
                dynamic::delete(&api, &kind, &object.name_any(), Some(PropagationPolicy::Orphan)).await?;
                // The orphan deletion adds a finalizer, which the garbage collector removes.
            }
        }
        Ok(())
    }

    async fn gone(residency: &Residency) -> Result<()> {
        let timeout = residency.settings.timeouts.worker.timeout;
        for kind in kinds() {
            let api = residency.any_api(&kind);
            let all = dynamic::list(&api, &kind).await?;
            let names: Vec<_> = all.iter().map(ResourceExt::name_any).collect();
            try_join_all(names.iter().map(|name| wait::until_gone(&api, name, timeout))).await?;
        }
        Ok(())
    }
}

/// Kinds in the order of the deletion.
pub(crate) fn kinds() -> [ApiResource; 4] {
    KINDS.map(|(kind, plural)| {
        ApiResource::from_gvk_with_plural(
            &GroupVersionKind::gvk("machine.sapcloud.io", "v1alpha1", kind),
            plural,
        )
    })
}
