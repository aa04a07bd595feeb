//! The order in which a seed cleans up after a shoot that has left the seed (GEP-7 R7-47, last step; role
//! `Former`).
//!
//! The shoot runs in a different seed by now, or is about to run there. So the flow changes no external
//! resource (RX-01, I9), and no object in the shoot (RX-02). The data of etcd-main stay until the destination
//! has recorded a restore (`leave.rs`).

use parts::{
    AllExtensions, Destroy, Etcds, FurtherExtensions, KubeApiserverExposure, MachineResources,
    ManagedResources, OtherExtensions, Residency, Writers,
};

use super::graph::{RETRY_LIMIT, ShootFlow, ShootGraph, Steps, graph, when};

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
pub fn build(residency: &Residency, given: LeaveInputs) -> ShootFlow<'_> {
    let mut g = graph("Shoot cluster departure", RETRY_LIMIT);
    stop(&mut g, residency, given);
    clean_up_extensions(&mut g, residency, given.namespace_is_active);
    // The edge (SNI proxy) of the seed is outside the namespace of the shoot, and its objects would be left
    // behind (I6).
    g.step(KubeApiserverExposure::DESTROY, residency, []);
    g.compile()
}

/// No process of the control plane may start again here, even after a manual change.
fn stop<'a>(g: &mut ShootGraph<'a>, residency: &'a Residency, given: LeaveInputs) {
    let stopped = when(g, given.namespace_is_active).destroy::<Writers>(residency, []);
    let mut g = when(g, given.namespace_is_active && !given.awaits_final_snapshot);
    let etcd = g.step(Etcds::DESTROY_BUT_KEEP_VOLUME, residency, stopped);
    let [_, gone] = Etcds::destroy_tasks();
    g.step(gone, residency, etcd);
}

/// Objects of providers and of the resource-manager: the providers release the objects, then the flow deletes
/// the objects.
fn clean_up_extensions<'a>(g: &mut ShootGraph<'a>, residency: &'a Residency, there: bool) {
    let mut g = when(g, there);
    let keep = g.step(ManagedResources::KEEP_OBJECTS, residency, []);
    let resources_gone = g.destroy::<ManagedResources>(residency, keep);
    // All extensions have migrated before the hand-over. An extension that was created later must not delete
    // any external resource.
    let migrated = g.migrate::<AllExtensions>(residency, resources_gone);
    g.destroy::<MachineResources>(residency, migrated);
    let others_gone = g.destroy::<OtherExtensions>(residency, migrated);
    g.destroy::<FurtherExtensions>(residency, others_gone);
}
