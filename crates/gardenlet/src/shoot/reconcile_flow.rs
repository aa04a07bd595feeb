//! The order in which a control plane is made, kept, or restored on a new seed (flows.md 3.2; R7-05: one flow for all).
//!
//! A restore differs in three places only: secrets come from the ShootState, extension resources are given their state
//! back, and the backups of the source seed are copied before etcd starts. The API is writable again when kube-apiserver
//! has rolled out; DNS is switched before that, since nothing answers under the old address any more.

use flow::{Flow, Graph, TaskId};
use parts::{
    Backups, CloudProviderSecret, ClusterIdentity, ControlPlane, ControllerLeaders, Etcds, Facts,
    Infrastructure, KubeApiserver, KubeControllerManager, KubeScheduler, Kubeconfig, Namespace, Secrets,
    ShootApi,
};
use runtime::Error;

use super::{
    backup_steps::{self, Wanted},
    exposure_steps::expose,
    graph::{RETRY_LIMIT, Steps, graph, when},
};

/// What the flow depends on, found out before it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// The control plane comes from another seed.
    pub restoring: bool,
    /// The seed has backups configured.
    pub has_backup: bool,
    /// The backups lie in another bucket and etcd was not restored yet (`is_copy_of_backups_required`).
    pub copy_is_required: bool,
}

/// Builds the flow.
#[must_use]
pub fn build(f: &Facts, given: Given) -> Flow<'_, Error> {
    let name = if given.restoring {
        "Shoot cluster restoration"
    } else {
        "Shoot cluster reconciliation"
    };
    let mut g = graph(name, RETRY_LIMIT);

    let namespace = g.step("Deploying Shoot namespace in Seed", [], || Namespace::deploy(f));
    let identity = g.step("Ensuring Shoot cluster identity", namespace, || {
        ClusterIdentity::ensure(f)
    });
    let credentials = g.step("Deploying cloud provider account secret", namespace, || {
        CloudProviderSecret::deploy(f)
    });
    let secrets = g.step("Initializing secrets management", namespace, || {
        Secrets::deploy(f)
    });

    let backups = Wanted {
        kept: given.has_backup,
        copy: given.has_backup && given.copy_is_required,
    };
    let prepared = backup_steps::prepare(&mut g, f, backups, namespace, [secrets, credentials]);
    let early = "Deploying events etcd while backups are copied";
    when(&mut g, backups.copy).step(early, secrets, || Etcds::deploy_events(f));
    let etcd_ready = g.deploy::<Etcds>(f, [secrets, credentials, prepared]);
    // A shoot that was brought back to life where it was may have had its final snapshot.
    let restored = given.restoring && given.has_backup;
    when(&mut g, restored).step("Resuming backups", etcd_ready, || Backups::resume(f));
    backup_steps::drop_source(&mut g, f, restored, etcd_ready);

    let address = expose(&mut g, f, [namespace, identity, secrets]);

    // The cloud is touched only after the source's backups are here: by then the source has stopped (R17-31, I3).
    let infrastructure = g.deploy::<Infrastructure>(f, [secrets, credentials, prepared]);

    let api_ready = g.deploy::<KubeApiserver>(f, [secrets, etcd_ready, address]);
    g.step("Deploying kubeconfig of the Shoot", [secrets, address], || {
        Kubeconfig::deploy(f)
    });

    complete_control_plane(&mut g, f, [secrets, credentials, infrastructure, api_ready]);
    g.compile()
}

/// What needs the API: the provider's part, the controllers, the scheduler. Last, controllers move from one manager to another
/// if the Shoot wants it (RK-05). That waits for the managers by itself: one that does not start because of a step must not
/// stand in the way of its being taken back.
fn complete_control_plane<'a>(g: &mut Graph<'a, Error>, f: &'a Facts, after: [TaskId; 4]) {
    let api_ready = after[3];
    let connected = g.step("Initializing connection to Shoot", api_ready, || {
        ShootApi::ready(f)
    });
    let rights = g.step(
        "Deploying rights of the cloud controller manager in Shoot",
        connected,
        || ControllerLeaders::deploy_rights(f),
    );
    let [provider, _] = g.deploy_in_two::<ControlPlane>(f, after.into_iter().chain(rights));
    let [controllers, _] = g.deploy_in_two::<KubeControllerManager>(f, api_ready);
    g.deploy::<KubeScheduler>(f, api_ready);
    g.step(
        "Handing over controllers between managers",
        [provider, controllers],
        || ControllerLeaders::hand_over(f),
    );
}
