//! What every deletion ends with, forced or not: the control plane stops, and then nothing of it may be left in the seed or
//! in the garden (I6). Only the backups stay: they follow the Shoot by their owner reference, after their grace period (I9).

use botanist::Botanist;
use flow::{Graph, Task, TaskId};
use runtime::Error;

use crate::shoot_state;

/// Nothing changes the shoot's objects any more after this.
pub(super) fn stop_control_plane<'a>(
    g: &mut Graph<'a, Error>,
    b: &'a Botanist,
    after: impl IntoIterator<Item = TaskId>,
) -> TaskId {
    let stop = g.add(
        Task::new("Deleting kube-apiserver deployment", || async {
            b.delete_kube_controller_manager().await?;
            b.delete_kube_scheduler().await?;
            b.delete_kube_apiserver().await
        })
        .after(after),
    );
    g.add(
        Task::new("Waiting until kube-apiserver has been deleted", || {
            b.wait_until_kube_apiserver_deleted()
        })
        .after(stop),
    )
}

/// Takes away the rest: the shoot's data, what leads to it, its namespace, and the state that would be carried.
pub(super) fn delete_the_rest<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, after: TaskId) {
    let etcd = g.add(Task::new("Destroying main and events etcd", || b.destroy_etcds()).after(after));
    let etcd_gone = g.add(
        Task::new("Waiting until main and event etcd have been destroyed", || {
            b.wait_until_etcds_deleted()
        })
        .after(etcd),
    );
    // Lies outside the shoot's namespace and would not go with it.
    let exposure = g.add(
        Task::new("Removing exposure of the Kubernetes API server", || {
            b.destroy_exposure()
        })
        .after(after),
    );
    let kubeconfig =
        g.add(Task::new("Deleting kubeconfig of the Shoot", || b.delete_kubeconfig()).after(after));
    let namespace = g.add(
        Task::new("Deleting shoot namespace in Seed", || b.delete_namespace())
            .after([etcd_gone, exposure, kubeconfig]),
    );
    let namespace_gone = g.add(
        Task::new("Waiting until shoot namespace in Seed has been deleted", || {
            b.wait_until_namespace_deleted()
        })
        .after(namespace),
    );
    g.add(Task::new("Deleting Shoot State", || shoot_state::delete(b)).after(namespace_gone));
}
