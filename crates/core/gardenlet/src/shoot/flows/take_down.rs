//! The last steps of every deletion, forced or not, after the control plane has stopped. No object may be
//! left in the seed or in the garden (I6). Only the backups stay. The BackupEntry is deleted after the Shoot,
//! through the owner reference, and the backups stay for a grace period (I9).

use flow::TaskId;
use parts::{Etcds, Facts, KubeApiserverExposure, Kubeconfig, Namespace, OwnerRecord};

use super::graph::{ShootGraph, Steps, when};

/// Deletes the data of the shoot, the exposure of the API, and the namespace. The ShootState is deleted with
/// the Shoot, through its owner reference. The owner record, if any, stays until no process is left that
/// could act for the shoot.
pub(crate) fn delete_the_rest<'a>(
    g: &mut ShootGraph<'a>,
    f: &'a Facts,
    after: impl IntoIterator<Item = TaskId>,
    owner_record: bool,
) {
    let after: Vec<_> = after.into_iter().collect();
    let etcd_gone = g.destroy::<Etcds>(&f.residency, after.clone());
    // The exposure is outside the namespace of the shoot, and would not be deleted with the namespace.
    let exposure = g.step(KubeApiserverExposure::DESTROY, &f.residency, after.clone());
    let kubeconfig = g.step(Kubeconfig::DESTROY, f, after);
    let nobodys = when(g, owner_record).destroy::<OwnerRecord>(&f.residency, etcd_gone);
    g.destroy::<Namespace>(&f.residency, [nobodys, exposure, kubeconfig]);
}
