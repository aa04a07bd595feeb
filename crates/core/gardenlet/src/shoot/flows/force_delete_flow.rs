//! The order of a forced deletion (docs/understand/flows.md, "Forced deletion"): the objects in the shoot are
//! not cleaned up first, and no cloud holds the deletion up.
//!
//! A user requested the deletion with an annotation. Admission accepts the annotation only for error codes
//! that require a manual clean-up. First the machine manager gets a bounded time to delete the instances, and
//! each remaining instance is named. Only then the extension resources get the annotation. The Cluster
//! carries the annotation already, since every flow writes the Cluster first. The order matters: the provider
//! of a Worker stops the machine manager, and no network can be deleted before the machines. A provider that
//! sees the annotation removes all that the provider can remove, releases the rest, and names each object
//! that is left behind (`extension::Actuator::force_delete`).
//!
//! The flow waits for the extension resources: a resource with a finalizer may be acted on later. So a
//! provider that does not run holds up also this deletion, and the wait names the resource.

use parts::{
    Destroy, Facts, ForcedExtensions, ForcedMachines, ForcedManagedResources, MachineResources, Writers,
};

use super::{
    graph::{RETRY_LIMIT, ShootFlow, Steps, graph},
    take_down::delete_the_rest,
};

/// Builds the flow.
#[must_use]
pub fn build(f: &Facts) -> ShootFlow<'_> {
    let mut g = graph("Shoot cluster force deletion", RETRY_LIMIT);
    let requested = g.step(ForcedMachines::ASK, &f.residency, []);
    let machines_named = g.step(ForcedMachines::WAIT, f, requested);
    // The objects go with etcd. The API of a shoot may be dead, and then no resource manager could delete the
    // objects.
    let keep = g.step(ForcedManagedResources::KEEP_OBJECTS, &f.residency, []);
    // The machine manager of a third-party provider may be in a ManagedResource.
    let resources_gone = g.destroy::<ForcedManagedResources>(&f.residency, [keep, machines_named]);
    let extensions_gone = g.destroy::<ForcedExtensions>(&f.residency, machines_named);
    let released = g.step(ForcedMachines::RELEASE, f, extensions_gone);
    let [_, gone] = MachineResources::destroy_tasks();
    let machines_gone = g.step(gone, &f.residency, released);
    let stopped = g.destroy::<Writers>(&f.residency, [resources_gone, machines_gone]);
    delete_the_rest(&mut g, f, stopped, true);
    g.compile()
}
