//! What every deletion ends with, forced or not, when the control plane has stopped: nothing of it may be
//! left in the seed or in the garden (I6). Only the backups stay: they follow the Shoot by their owner
//! reference, after their grace period (I9).

use flow::{Graph, TaskId};
use parts::{Etcds, Exposure, Facts, Kubeconfig, Namespace, OwnerRecord};
use runtime::Error;

use super::graph::{Steps, when};

/// Takes away the rest: the shoot's data, what leads to it, and its namespace. The state that would be
/// carried follows the Shoot by its owner reference. Whose the shoot is is told, where it is, until nothing
/// is left that could act for it.
pub(super) fn delete_the_rest<'a>(
    g: &mut Graph<'a, Error>,
    f: &'a Facts,
    after: impl IntoIterator<Item = TaskId>,
    owner_record: bool,
) {
    let after: Vec<_> = after.into_iter().collect();
    let etcd_gone = g.destroy::<Etcds>(f, after.clone());
    // Lies outside the shoot's namespace and would not go with it.
    let exposure = g.step(
        "Removing exposure of the Kubernetes API server",
        after.clone(),
        || Exposure::destroy(f),
    );
    let kubeconfig = g.step("Deleting kubeconfig of the Shoot", after, || {
        Kubeconfig::destroy(f)
    });
    let nobodys = when(g, owner_record).destroy::<OwnerRecord>(f, etcd_gone);
    g.destroy::<Namespace>(f, [nobodys, exposure, kubeconfig]);
}
