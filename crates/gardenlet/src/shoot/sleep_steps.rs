//! Steps by which a control plane stops and keeps all that it has: who uses the API first, then the API, then
//! etcd.

use flow::{Graph, TaskId};
use parts::{
    Backups, ControlPlane, Etcds, Facts, KubeApiserver, KubeControllerManager, KubeScheduler, TunnelServer,
};
use runtime::Error;

use super::graph::{Steps, when};

/// Puts all of it to sleep. No machine may be left. `store`: etcd runs and has backups, which are completed
/// before it stops; if that fails, etcd goes on, and nothing is lost.
pub(super) fn fall_asleep<'a>(
    g: &mut Graph<'a, Error>,
    f: &'a Facts,
    store: bool,
    after: impl IntoIterator<Item = TaskId>,
) {
    let after: Vec<_> = after.into_iter().collect();
    let controllers = g.sleep::<KubeControllerManager>(f, after.clone());
    let scheduler = g.sleep::<KubeScheduler>(f, after);
    let api = g.sleep::<KubeApiserver>(f, [controllers, scheduler]);
    g.sleep::<TunnelServer>(f, api);
    // Its provider goes by kube-apiserver: while that runs, so does the provider's part.
    let provider = g.sleep::<ControlPlane>(f, api);
    let stored = when(g, store).step("Creating ETCD Snapshot before etcd sleeps", api, || {
        Backups::complete(f)
    });
    g.sleep::<Etcds>(f, [provider, stored]);
}
