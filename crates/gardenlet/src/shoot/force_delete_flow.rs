//! The order of a forced deletion (flows.md 3.4): the shoot's own objects are not cleaned up first, and no cloud holds it up.
//!
//! A user asked for it with an annotation that admission accepts only for error codes which a user must clean up by hand.
//! The annotation is passed on to the extension resources, beside the Cluster, which every flow writes first. A provider
//! that sees it takes away what it can, lets go of the rest, and tells what it left (`extension::Actuator::force_delete`).
//! The flow still waits for that: a resource that nobody let go of may be acted on later. So a provider that does not run
//! holds up also this deletion, and the wait says which.

use botanist::Botanist;
use flow::Flow;
use runtime::Error;

use super::{
    graph::{RETRY_LIMIT, graph},
    take_down::{delete_the_rest, stop_control_plane},
};

/// Builds the flow.
#[must_use]
pub fn build(b: &Botanist) -> Flow<'_, Error> {
    let mut g = graph("Shoot cluster force deletion", RETRY_LIMIT);
    let resources = g.step("Deleting Managed Resources", [], || b.delete_managed_resources());
    let resources_gone = g.step("Waiting until ManagedResources are deleted", resources, || {
        b.wait_until_managed_resources_deleted()
    });
    let extensions = g.step("Deleting extension resources by force", [], || {
        b.force_delete_extension_resources()
    });
    let extensions_gone = g.step(
        "Waiting until extension resources have been deleted",
        extensions,
        || b.wait_until_all_extension_resources_deleted(),
    );
    let machines = g.step("Deleting machine resources", [], || b.delete_machine_resources());
    let machines_gone = g.step(
        "Waiting until machine resources have been deleted",
        machines,
        || b.wait_until_machine_resources_deleted(),
    );
    let stopped = stop_control_plane(&mut g, b, [resources_gone, extensions_gone, machines_gone]);
    delete_the_rest(&mut g, b, stopped);
    g.compile()
}
