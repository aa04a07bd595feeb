//! The order in which a seed cleans up after a shoot that has left the seed (GEP-7 R7-47, last step; role
//! `Former`).
//!
//! The shoot runs in a different seed by now, or is about to run there. So the flow changes no external
//! resource (RX-01, I9), and no object in the shoot (RX-02). The data of etcd-main stay until the destination
//! has recorded a restore (`leave.rs`).

use flow::{Flow, Graph};
use parts::{
    AllExtensions, Destroy, Etcds, Exposure, FurtherExtensions, MachineResources, ManagedResources,
    OtherExtensions, Stay, Writers,
};
use runtime::Error;

use super::graph::{RETRY_LIMIT, Steps, graph, when};

/// The parts that still exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaveInputs {
    /// The namespace exists and is not being deleted.
    pub namespace_is_active: bool,
    /// The final snapshot of this etcd does not exist yet (R17-46).
    pub awaits_final_snapshot: bool,
}

/// Builds the flow.
#[must_use]
pub fn build(stay: &Stay, given: LeaveInputs) -> Flow<'_, Error> {
    let mut g = graph("Shoot cluster departure", RETRY_LIMIT);
    stop(&mut g, stay, given);
    clean_up_extensions(&mut g, stay, given.namespace_is_active);
    // The edge (SNI proxy) of the seed is outside the namespace of the shoot, and its objects would be left
    // behind (I6).
    g.step("Removing exposure of the Kubernetes API server", [], || {
        Exposure::destroy(stay)
    });
    g.compile()
}

/// No process of the control plane may start again here, even after a manual change.
fn stop<'a>(g: &mut Graph<'a, Error>, stay: &'a Stay, given: LeaveInputs) {
    let stopped = when(g, given.namespace_is_active).destroy::<Writers>(stay, []);
    let mut g = when(g, given.namespace_is_active && !given.awaits_final_snapshot);
    let etcd = g.step("Destroying etcd and keeping its data", stopped, || {
        Etcds::destroy_but_keep_volume(stay)
    });
    g.step(
        "Waiting until main and event etcd have been destroyed",
        etcd,
        || Etcds::gone(stay),
    );
}

/// Objects of providers and of the resource-manager: the providers release the objects, then the flow deletes
/// the objects.
fn clean_up_extensions<'a>(g: &mut Graph<'a, Error>, stay: &'a Stay, there: bool) {
    let mut g = when(g, there);
    let keep = g.step(
        "Configuring Managed Resources objects to be kept in the Shoot",
        [],
        || ManagedResources::keep_objects(stay),
    );
    let resources_gone = g.destroy::<ManagedResources>(stay, keep);
    // All extensions have migrated before the hand-over. An extension that was created later must not delete
    // any external resource.
    let migrated = g.migrate::<AllExtensions>(stay, resources_gone);
    g.destroy::<MachineResources>(stay, migrated);
    let others_gone = g.destroy::<OtherExtensions>(stay, migrated);
    g.destroy::<FurtherExtensions>(stay, others_gone);
}
