//! The order in which a seed cleans up after a shoot that has left it (GEP-7 R7-47, last step; role
//! `Former`).
//!
//! The shoot runs elsewhere by now, or is about to: nothing outside of the seed is touched (RX-01, I9), and
//! nothing of it in the shoot (RX-02). The data of etcd-main stay until the destination has recorded a
//! restore (`leave.rs`).

use flow::{Flow, Graph};
use parts::{
    AllExtensions, Destroy, Etcds, Exposure, FurtherExtensions, MachineResources, ManagedResources,
    OtherExtensions, Stay, Writers,
};
use runtime::Error;

use super::graph::{RETRY_LIMIT, Steps, graph, when};

/// What is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// The namespace exists and is not being deleted.
    pub namespace_is_active: bool,
    /// Its final snapshot is not there yet (R17-46).
    pub etcd_is_needed: bool,
}

/// Builds the flow.
#[must_use]
pub fn build(stay: &Stay, given: Given) -> Flow<'_, Error> {
    let mut g = graph("Shoot cluster departure", RETRY_LIMIT);
    stop(&mut g, stay, given);
    clean_up_extensions(&mut g, stay, given.namespace_is_active);
    // The seed's front lies outside the shoot's namespace and would be left behind (I6).
    g.step("Removing exposure of the Kubernetes API server", [], || {
        Exposure::destroy(stay)
    });
    g.compile()
}

/// Nothing may come back to life here, whatever somebody did meanwhile.
fn stop<'a>(g: &mut Graph<'a, Error>, stay: &'a Stay, given: Given) {
    let stopped = when(g, given.namespace_is_active).destroy::<Writers>(stay, []);
    let mut g = when(g, given.namespace_is_active && !given.etcd_is_needed);
    let etcd = g.step("Destroying etcd and keeping its data", stopped, || {
        Etcds::destroy_but_keep_volume(stay)
    });
    g.step(
        "Waiting until main and event etcd have been destroyed",
        etcd,
        || Etcds::gone(stay),
    );
}

/// What providers and the resource manager had here: they let go of it, and it goes.
fn clean_up_extensions<'a>(g: &mut Graph<'a, Error>, stay: &'a Stay, there: bool) {
    let mut g = when(g, there);
    let keep = g.step(
        "Configuring Managed Resources objects to be kept in the Shoot",
        [],
        || ManagedResources::keep_objects(stay),
    );
    let resources_gone = g.destroy::<ManagedResources>(stay, keep);
    // All have let go before the hand-over; one that somebody made since must not take anything away outside.
    let migrated = g.migrate::<AllExtensions>(stay, resources_gone);
    g.destroy::<MachineResources>(stay, migrated);
    let others_gone = g.destroy::<OtherExtensions>(stay, migrated);
    g.destroy::<FurtherExtensions>(stay, others_gone);
}
