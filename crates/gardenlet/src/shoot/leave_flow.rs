//! The order in which a seed cleans up after a shoot that has left it (GEP-7 R7-47, last step; role `Former`).
//!
//! The shoot runs elsewhere by now, or is about to: nothing outside of the seed is touched (RX-01, I9), and nothing of it in
//! the shoot (RX-02). The data of etcd-main stay until the destination has recorded a restore (`leave.rs`).

use botanist::{Kinds, Stay};
use flow::{Flow, Graph};
use runtime::Error;

use super::graph::{RETRY_LIMIT, graph};

/// What is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The namespace exists and is not being deleted.
    pub namespace_is_active: bool,
}

/// Builds the flow.
#[must_use]
pub fn build(stay: &Stay, facts: Facts) -> Flow<'_, Error> {
    let there = facts.namespace_is_active;
    let mut g = graph("Shoot cluster departure", RETRY_LIMIT);

    // Nothing may come back to life here, whatever somebody did meanwhile.
    let stop = g.step_if(there, "Deleting kube-apiserver deployment", [], || {
        stay.stop_writers()
    });
    let stopped = g.step_if(
        there,
        "Waiting until kube-apiserver has been deleted",
        stop,
        || stay.wait_until_writers_stopped(),
    );
    let etcd = g.step_if(there, "Destroying etcd and keeping its data", stopped, || {
        stay.destroy_etcds_but_keep_volume()
    });
    g.step_if(
        there,
        "Waiting until main and event etcd have been destroyed",
        etcd,
        || stay.wait_until_etcds_deleted(),
    );

    clean_up_extensions(&mut g, stay, there);
    // The seed's front lies outside the shoot's namespace and would be left behind (I6).
    g.step("Removing exposure of the Kubernetes API server", [], || {
        stay.destroy_exposure()
    });
    g.compile()
}

/// What providers and the resource manager had here: they let go of it, and it goes.
fn clean_up_extensions<'a>(g: &mut Graph<'a, Error>, stay: &'a Stay, there: bool) {
    let keep = g.step_if(
        there,
        "Configuring Managed Resources objects to be kept in the Shoot",
        [],
        || stay.keep_managed_resource_objects(),
    );
    let resources = g.step_if(
        there,
        "Deleting all Managed Resources from the Shoot's namespace",
        keep,
        || stay.delete_managed_resources(),
    );
    let resources_gone = g.step_if(
        there,
        "Waiting until ManagedResources are deleted",
        resources,
        || stay.wait_until_managed_resources_deleted(),
    );
    // All have let go before the hand-over; one that somebody made since must not take anything away outside.
    let migrate = g.step_if(there, "Migrating extension resources", resources_gone, || {
        stay.migrate_kinds(Kinds::All)
    });
    let migrated = g.step_if(
        there,
        "Waiting until extension resources have been migrated",
        migrate,
        || stay.wait_until_kinds_migrated(Kinds::All),
    );
    let machines = g.step_if(
        there,
        "Shallow-deleting machine resources from the Shoot namespace",
        migrated,
        || stay.delete_machine_resources(),
    );
    g.step_if(
        there,
        "Waiting until machine resources have been deleted",
        machines,
        || stay.wait_until_machine_resources_deleted(),
    );
    let extensions = g.step_if(
        there,
        "Deleting extension resources from the Shoot namespace",
        migrated,
        || stay.delete_kinds(Kinds::All),
    );
    g.step_if(
        there,
        "Waiting until extension resources have been deleted",
        extensions,
        || stay.wait_until_kinds_deleted(Kinds::All),
    );
}
