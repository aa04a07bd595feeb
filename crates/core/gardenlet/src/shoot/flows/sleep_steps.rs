//! Steps that stop a control plane and keep its data: first the clients of the API, then the API, then etcd.

use flow::TaskId;
use parts::{
    Backups, ControlPlane, Etcds, Facts, KubeApiserver, KubeControllerManager, KubeScheduler, TunnelServer,
};

use super::graph::{ShootGraph, Steps, when};

/// Puts the complete control plane to sleep. No machine may be left. `store`: etcd runs and has backups. The
/// backups are completed before etcd stops. If that fails, etcd continues to run, and no data are lost.
pub(crate) fn fall_asleep<'a>(
    g: &mut ShootGraph<'a>,
    f: &'a Facts,
    store: bool,
    after: impl IntoIterator<Item = TaskId>,
) {
    let after: Vec<_> = after.into_iter().collect();
    let controllers = g.sleep::<KubeControllerManager>(f, after.clone());
    let scheduler = g.sleep::<KubeScheduler>(f, after);
    let api = g.sleep::<KubeApiserver>(f, [controllers, scheduler]);
    g.sleep::<TunnelServer>(f, api);
    // The provider follows the replicas of kube-apiserver: the ControlPlane runs as long as kube-apiserver
    // runs.
    let provider = g.sleep::<ControlPlane>(f, api);
    let stored = when(g, store).step(Backups::TAKE_SNAPSHOT_BEFORE_SLEEP, &f.residency, api);
    g.sleep::<Etcds>(f, [provider, stored]);
}
