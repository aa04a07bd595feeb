//! The order of a planned move in the source seed (GEP-7 R7-47; flows.md 3.1).
//!
//! While the shoot's API still answers, extension resources are migrated and the state of the shoot is persisted. Then the
//! API is stopped and cannot be written any more; the final snapshot is taken; the BackupEntry is handed over; the namespace
//! goes. Nothing external is deleted at any point (RX-01, I9), and the hand-over itself, the write of `status.seedName`,
//! happens only after this flow has succeeded.

use std::time::Duration;

use botanist::Botanist;
use flow::{Flow, Task, TaskId};
use runtime::Error;

use super::graph;
use crate::shoot_state;

/// Time for the attempts of a task here: a move that cannot go on is run again from the start after this, with fresh facts.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// What of the control plane is still there. A flow that is run again finds less and skips what is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The namespace exists and is not being deleted.
    pub namespace_is_active: bool,
    /// The namespace exists and is active, and kube-apiserver exists: the shoot's own objects can still be reached.
    pub control_plane_is_up: bool,
    /// The BackupEntry still belongs to this seed and the namespace exists: the final snapshot was not handed over yet.
    pub snapshot_is_due: bool,
}

/// Builds the flow.
#[must_use]
#[allow(clippy::too_many_lines)] // the order of a move is one list, to be read from top to bottom
pub fn build(b: &Botanist, facts: Facts) -> Flow<'_, Error> {
    let mut g = graph("Shoot cluster preparation for migration", LIMIT);
    let Facts {
        namespace_is_active,
        control_plane_is_up,
        snapshot_is_due,
    } = facts;

    // What the steps below need to be there, also when an earlier run was interrupted.
    let namespace = g.add(
        Task::new("Deploying Shoot namespace in Seed", || b.deploy_namespace()).skip_if(!namespace_is_active),
    );
    let secrets = g.add(
        Task::new("Initializing secrets management", || {
            b.initialize_secrets_management()
        })
        .after(namespace)
        .skip_if(!namespace_is_active),
    );
    let etcd = g.add(
        Task::new("Deploying main and events etcd", || b.deploy_etcds())
            .after(secrets)
            .skip_if(!snapshot_is_due),
    );
    let etcd_ready = g.add(
        Task::new("Waiting until main and event etcd report readiness", || {
            b.wait_until_etcds_ready()
        })
        .after(etcd)
        .skip_if(!snapshot_is_due),
    );

    // Objects in the shoot stay; only what keeps them in shape here goes (RX-02, RX-23).
    let keep = g.add(
        Task::new(
            "Configuring Managed Resources objects to be kept in the Shoot",
            || b.keep_managed_resource_objects(),
        )
        .after(etcd_ready)
        .skip_if(!control_plane_is_up),
    );
    let resources = g.add(
        Task::new(
            "Deleting all Managed Resources from the Shoot's namespace",
            || b.delete_managed_resources(),
        )
        .after(keep),
    );
    let resources_gone = g.add(
        Task::new("Waiting until ManagedResources are deleted", || {
            b.wait_until_managed_resources_deleted()
        })
        .after(resources),
    );

    let early_extensions = migrate_early_extensions(&mut g, b, resources_gone);

    // From here on the shoot's API cannot be written.
    let stop = g.add(
        Task::new("Deleting kube-apiserver deployment", || async {
            b.delete_kube_controller_manager().await?;
            b.delete_kube_scheduler().await?;
            b.delete_kube_apiserver().await
        })
        .after([etcd_ready, resources_gone, early_extensions]),
    );
    let stopped = g.add(
        Task::new("Waiting until kube-apiserver has been deleted", || {
            b.wait_until_kube_apiserver_deleted()
        })
        .after(stop),
    );

    let late_extensions = migrate_late_extensions(&mut g, b, stopped);

    let snapshot = g.add(
        Task::new("Creating ETCD Snapshot", || b.take_final_snapshot())
            .after([stopped, etcd_ready])
            .skip_if(!snapshot_is_due),
    );
    let backup_entry = g.add(
        Task::new("Migrating BackupEntry to new seed", || b.migrate_backup_entry())
            .after([snapshot, late_extensions]),
    );
    let backup_entry_migrated = g.add(
        Task::new("Waiting for BackupEntry to be migrated to new seed", || {
            b.wait_until_backup_entry_migrated()
        })
        .after(backup_entry),
    );
    let destroy_etcd = g.add(
        Task::new("Destroying main and events etcd", || b.destroy_etcds())
            .after([snapshot, backup_entry_migrated]),
    );
    let etcd_gone = g.add(
        Task::new("Waiting until main and event etcd have been destroyed", || {
            b.wait_until_etcds_deleted()
        })
        .after(destroy_etcd),
    );
    let delete_namespace = g.add(
        Task::new("Deleting shoot namespace in Seed", || b.delete_namespace()).after([
            backup_entry_migrated,
            late_extensions,
            etcd_gone,
        ]),
    );
    g.add(
        Task::new("Waiting until shoot namespace in Seed has been deleted", || {
            b.wait_until_namespace_deleted()
        })
        .after(delete_namespace),
    );
    g.compile()
}

/// Extension resources that do not serve the API: migrated, their state persisted, and deleted while the API still answers.
fn migrate_early_extensions<'a>(g: &mut flow::Graph<'a, Error>, b: &'a Botanist, after: TaskId) -> TaskId {
    let migrate = g.add(
        Task::new("Migrating extension resources", || {
            b.migrate_extension_resources()
        })
        .after(after),
    );
    let migrated = g.add(
        Task::new("Waiting until extension resources have been migrated", || {
            b.wait_until_extension_resources_migrated()
        })
        .after(migrate),
    );
    let control_plane = g.add(
        Task::new("Migrating shoot control plane", || async {
            b.control_plane().migrate().await
        })
        .after(migrated),
    );
    let control_plane_migrated = g.add(
        Task::new("Waiting until shoot control plane has been migrated", || async {
            b.control_plane().wait_until_migrated().await
        })
        .after(control_plane),
    );
    let persist = g.add(
        Task::new("Persisting ShootState in garden cluster", || {
            shoot_state::persist(b)
        })
        .after(control_plane_migrated),
    );
    let delete = g.add(
        Task::new("Deleting extension resources from the Shoot namespace", || {
            b.delete_extension_resources()
        })
        .after(persist),
    );
    let machines = g.add(
        Task::new(
            "Shallow-deleting machine resources from the Shoot namespace",
            || b.delete_machine_resources(),
        )
        .after(persist),
    );
    let control_plane_deleted = g.add(
        Task::new("Deleting shoot control plane", || async {
            b.control_plane().delete().await
        })
        .after(persist),
    );
    let machines_gone = g.add(
        Task::new("Waiting until machine resources have been deleted", || {
            b.wait_until_machine_resources_deleted()
        })
        .after(machines),
    );
    let control_plane_gone = g.add(
        Task::new("Waiting until shoot control plane has been deleted", || async {
            b.control_plane().wait_until_deleted().await
        })
        .after(control_plane_deleted),
    );
    g.add(
        Task::new("Waiting until extension resources have been deleted", || {
            b.wait_until_extension_resources_deleted()
        })
        .after([delete, machines_gone, control_plane_gone]),
    )
}

/// Infrastructure and DNS records: migrated after the API has stopped. Their state is persisted once more, since it may
/// have been written by the migrate operation itself (RX-11).
fn migrate_late_extensions<'a>(g: &mut flow::Graph<'a, Error>, b: &'a Botanist, after: TaskId) -> TaskId {
    let infrastructure = g.add(
        Task::new("Migrating shoot infrastructure", || async {
            b.infrastructure().migrate().await
        })
        .after(after),
    );
    let infrastructure_migrated = g.add(
        Task::new("Waiting until shoot infrastructure has been migrated", || async {
            b.infrastructure().wait_until_migrated().await
        })
        .after(infrastructure),
    );
    let records = g.add(Task::new("Migrating DNS records", || b.migrate_dns_records()).after(after));
    let records_migrated = g.add(
        Task::new("Waiting until DNS records have been migrated", || {
            b.wait_until_dns_records_migrated()
        })
        .after(records),
    );
    let persist = g.add(
        Task::new("Persisting late state in ShootState", || shoot_state::persist(b))
            .after([infrastructure_migrated, records_migrated]),
    );
    let delete_infrastructure = g.add(
        Task::new("Deleting shoot infrastructure", || async {
            b.infrastructure().delete().await
        })
        .after(persist),
    );
    let delete_records = g.add(
        Task::new("Deleting DNSRecords from the Shoot namespace", || {
            b.delete_dns_records()
        })
        .after(persist),
    );
    let records_gone = g.add(
        Task::new("Waiting until DNSRecords have been deleted", || {
            b.wait_until_dns_records_deleted()
        })
        .after(delete_records),
    );
    // The seed's front lies outside the shoot's namespace and would be left behind (I6).
    let exposure = g.add(
        Task::new("Removing exposure of the Kubernetes API server", || {
            b.destroy_exposure()
        })
        .after(records_gone),
    );
    g.add(
        Task::new("Waiting until shoot infrastructure has been deleted", || async {
            b.infrastructure().wait_until_deleted().await
        })
        .after([delete_infrastructure, exposure]),
    )
}
