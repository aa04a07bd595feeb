//! What every deletion ends with, forced or not: the control plane stops, and then nothing of it may be left in the seed or
//! in the garden (I6). Only the backups stay: they follow the Shoot by their owner reference, after their grace period (I9).

use botanist::Botanist;
use flow::{Graph, TaskId};
use runtime::Error;

/// Nothing changes the shoot's objects any more after this.
pub(super) fn stop_control_plane<'a>(
    g: &mut Graph<'a, Error>,
    b: &'a Botanist,
    after: impl IntoIterator<Item = TaskId>,
) -> TaskId {
    let stop = g.step("Deleting kube-apiserver deployment", after, || b.stop_writers());
    g.step("Waiting until kube-apiserver has been deleted", stop, || {
        b.wait_until_writers_stopped()
    })
}

/// Takes away the rest: the shoot's data, what leads to it, and its namespace. The state that would be carried follows the
/// Shoot by its owner reference.
pub(super) fn delete_the_rest<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, after: TaskId) {
    let etcd = g.step("Destroying main and events etcd", after, || b.destroy_etcds());
    let etcd_gone = g.step(
        "Waiting until main and event etcd have been destroyed",
        etcd,
        || b.wait_until_etcds_deleted(),
    );
    // Lies outside the shoot's namespace and would not go with it.
    let exposure = g.step("Removing exposure of the Kubernetes API server", after, || {
        b.destroy_exposure()
    });
    let kubeconfig = g.step("Deleting kubeconfig of the Shoot", after, || {
        b.delete_kubeconfig()
    });
    let namespace = g.step(
        "Deleting shoot namespace in Seed",
        [etcd_gone, exposure, kubeconfig],
        || b.delete_namespace(),
    );
    g.step(
        "Waiting until shoot namespace in Seed has been deleted",
        namespace,
        || b.wait_until_namespace_deleted(),
    );
}
