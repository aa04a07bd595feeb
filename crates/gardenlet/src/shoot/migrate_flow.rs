//! The order of a planned move in the source seed (GEP-7 R7-47; flows.md 3.1).
//!
//! While the shoot's API still answers, backups are tried, extension resources are migrated, and the state of the shoot is
//! persisted. Then the API is stopped and cannot be written any more; what is left to let go lets go, and the final snapshot
//! is taken and proved. That is all: the hand-over, one write of `status.seedName`, follows when this flow has succeeded
//! (`controller.rs`), and what is left here is cleaned up after it (`leave_flow.rs`). Until that write the move can be
//! called off, and nothing that a restore would need is gone.

use std::time::Duration;

use botanist::{Botanist, Kinds};
use flow::{Flow, Graph, TaskId};
use runtime::Error;

use super::graph::graph;
use crate::shoot_state;

/// Time for the attempts of a task here: a move that cannot go on is run again from the start after this, with fresh facts.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// What of the control plane is still there. A flow that is run again finds less and skips what is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// kube-apiserver exists: the shoot can still be written.
    pub control_plane_is_up: bool,
}

/// Builds the flow.
#[must_use]
pub fn build(b: &Botanist, facts: Facts) -> Flow<'_, Error> {
    let mut g = graph("Shoot cluster preparation for migration", LIMIT);

    // What the steps below need to be there, also when an earlier run was interrupted.
    let namespace = g.step("Looking for the shoot's namespace in Seed", [], || {
        b.check_namespace_is_active()
    });
    let secrets = g.step("Initializing secrets management", namespace, || {
        b.initialize_secrets_management()
    });
    let etcd = g.step("Deploying main and events etcd", secrets, || b.deploy_etcds());
    let etcd_ready = g.step("Waiting until main and event etcd report readiness", etcd, || {
        b.wait_until_etcds_ready()
    });
    let backups = g.step_if(
        facts.control_plane_is_up,
        "Checking that backups can be taken",
        etcd_ready,
        || b.check_backups(),
    );

    let early = migrate_early_extensions(&mut g, b, backups);

    // From here on the shoot's API cannot be written.
    let stop = g.step("Deleting kube-apiserver deployment", [etcd_ready, early], || {
        b.stop_writers()
    });
    let stopped = g.step("Waiting until kube-apiserver has been deleted", stop, || {
        b.wait_until_writers_stopped()
    });
    let late = migrate_late_extensions(&mut g, b, stopped);
    let snapshot = g.step("Creating ETCD Snapshot", [stopped, etcd_ready], || {
        b.take_final_snapshot()
    });
    g.step(
        "Making sure that nothing writes to the shoot any more",
        [late, snapshot],
        || b.check_nothing_writes(),
    );
    g.compile()
}

/// What does not serve the API: let go of, and persisted, while the API still answers. Objects in the shoot stay; only what
/// keeps them in shape here goes (RX-02, RX-23).
fn migrate_early_extensions<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, after: TaskId) -> TaskId {
    let keep = g.step(
        "Configuring Managed Resources objects to be kept in the Shoot",
        after,
        || b.keep_managed_resource_objects(),
    );
    let resources = g.step(
        "Deleting all Managed Resources from the Shoot's namespace",
        keep,
        || b.delete_managed_resources(),
    );
    let resources_gone = g.step("Waiting until ManagedResources are deleted", resources, || {
        b.wait_until_managed_resources_deleted()
    });
    let migrate = g.step("Migrating extension resources", resources_gone, || {
        b.migrate_kinds(Kinds::GENERIC)
    });
    let migrated = g.step(
        "Waiting until extension resources have been migrated",
        migrate,
        || b.wait_until_kinds_migrated(Kinds::GENERIC),
    );
    let control_plane = g.step("Migrating shoot control plane", migrated, || async {
        b.control_plane().migrate().await
    });
    let control_plane_migrated = g.step(
        "Waiting until shoot control plane has been migrated",
        control_plane,
        || async { b.control_plane().wait_until_migrated().await },
    );
    g.step(
        "Persisting ShootState in garden cluster",
        control_plane_migrated,
        || shoot_state::persist(b),
    )
}

/// Infrastructure and DNS records: let go of after the API has stopped. Their state is persisted once more, since it may
/// have been written by the migrate operation itself (RX-11).
fn migrate_late_extensions<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, after: TaskId) -> TaskId {
    let infrastructure = g.step("Migrating shoot infrastructure", after, || async {
        b.infrastructure().migrate().await
    });
    let infrastructure_migrated = g.step(
        "Waiting until shoot infrastructure has been migrated",
        infrastructure,
        || async { b.infrastructure().wait_until_migrated().await },
    );
    let records = g.step("Migrating DNS records", after, || b.migrate_dns_records());
    let records_migrated = g.step("Waiting until DNS records have been migrated", records, || {
        b.wait_until_dns_records_migrated()
    });
    // Whatever kind there is by now: nothing may be left that has not let go.
    let all = g.step(
        "Waiting until everything has been migrated",
        [infrastructure_migrated, records_migrated],
        || b.wait_until_kinds_migrated(Kinds::All),
    );
    g.step("Persisting late state in ShootState", all, || {
        shoot_state::persist(b)
    })
}
