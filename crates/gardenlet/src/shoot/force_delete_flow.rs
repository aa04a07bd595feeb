//! The order of a forced deletion (flows.md 3.4): the shoot's own objects are not cleaned up first.
//!
//! A user asked for it with an annotation that admission accepts only for error codes which a user must clean up by hand.
//! Extension resources are deleted in the ordinary way, and the flow waits for their controllers. The Cluster object tells them
//! of the annotation; a provider that does not let go because of it (provider-local does not) still holds up the deletion.

use botanist::Botanist;
use flow::{Flow, Task};
use runtime::Error;

use super::{RETRY_LIMIT, graph};

/// Builds the flow.
#[must_use]
pub fn build(b: &Botanist) -> Flow<'_, Error> {
    let mut g = graph("Shoot cluster force deletion", RETRY_LIMIT);
    // The place where a provider can see the annotation.
    let cluster = g.add(Task::new("Syncing Cluster resource", || b.sync_cluster()));
    let resources =
        g.add(Task::new("Deleting Managed Resources", || b.delete_managed_resources()).after(cluster));
    let resources_gone = g.add(
        Task::new("Waiting until ManagedResources are deleted", || {
            b.wait_until_managed_resources_deleted()
        })
        .after(resources),
    );
    let extensions = g.add(
        Task::new("Deleting extension resources", || async {
            b.delete_extension_resources().await?;
            b.delete_dns_records().await?;
            b.control_plane().delete().await?;
            b.infrastructure().delete().await
        })
        .after(cluster),
    );
    let machines =
        g.add(Task::new("Deleting machine resources", || b.delete_machine_resources()).after(cluster));
    let extensions_gone = g.add(
        Task::new("Waiting until extension resources have been deleted", || async {
            b.wait_until_extension_resources_deleted().await?;
            b.wait_until_dns_records_deleted().await?;
            b.control_plane().wait_until_deleted().await?;
            b.infrastructure().wait_until_deleted().await
        })
        .after(extensions),
    );
    let machines_gone = g.add(
        Task::new("Waiting until machine resources have been deleted", || {
            b.wait_until_machine_resources_deleted()
        })
        .after(machines),
    );
    let down = g.add(
        Task::new("Deleting control plane", || async {
            b.delete_kube_controller_manager().await?;
            b.delete_kube_scheduler().await?;
            b.delete_kube_apiserver().await?;
            b.destroy_etcds().await
        })
        .after([resources_gone, extensions_gone, machines_gone]),
    );
    let etcd_gone = g.add(
        Task::new("Waiting until main and event etcd have been destroyed", || {
            b.wait_until_etcds_deleted()
        })
        .after(down),
    );
    let outside = g.add(
        Task::new("Removing names of the Shoot", || async {
            b.destroy_exposure().await?;
            b.delete_kubeconfig().await
        })
        .after(down),
    );
    let namespace = g.add(
        Task::new("Deleting shoot namespace in Seed", || b.delete_namespace()).after([etcd_gone, outside]),
    );
    let namespace_gone = g.add(
        Task::new("Waiting until shoot namespace in Seed has been deleted", || {
            b.wait_until_namespace_deleted()
        })
        .after(namespace),
    );
    g.add(Task::new("Deleting Shoot State", || crate::shoot_state::delete(b)).after(namespace_gone));
    g.compile()
}
