//! The order of a forced deletion (flows.md 3.4): the shoot's own objects are not cleaned up first, and no cloud holds it up.
//!
//! A user asked for it with an annotation that admission accepts only for error codes which a user must clean up by hand.
//! The annotation is passed on to the extension resources, beside the Cluster, which every flow writes first. A provider
//! that sees it takes away what it can, lets go of the rest, and tells what it left (`extension::Actuator::force_delete`).
//! The flow still waits for that: a resource that nobody let go of may be acted on later. So a provider that does not run
//! holds up also this deletion, and the wait says which.

use flow::Flow;
use parts::{Facts, ForcedExtensions, ForcedManagedResources, MachineResources, Writers};
use runtime::Error;

use super::{
    graph::{RETRY_LIMIT, Steps, graph},
    take_down::delete_the_rest,
};

/// Builds the flow.
#[must_use]
pub fn build(f: &Facts) -> Flow<'_, Error> {
    let mut g = graph("Shoot cluster force deletion", RETRY_LIMIT);
    // They go with etcd. The API of a shoot may be dead, and then nobody could take them away.
    let keep = g.step(
        "Configuring Managed Resources objects to be kept in the Shoot",
        [],
        || ForcedManagedResources::keep_objects(f),
    );
    let resources_gone = g.destroy::<ForcedManagedResources>(f, keep);
    let extensions_gone = g.destroy::<ForcedExtensions>(f, []);
    let machines_gone = g.destroy::<MachineResources>(f, []);
    let stopped = g.destroy::<Writers>(f, [resources_gone, extensions_gone, machines_gone]);
    delete_the_rest(&mut g, f, stopped, true);
    g.compile()
}
