//! The order in which a control plane is made, kept, or restored on a new seed (flows.md 3.2; R7-05: one flow for all).
//!
//! A restore differs in three places only: secrets come from the ShootState, extension resources are given their state
//! back, and the backups of the source seed are copied before etcd starts. The API is writable again when kube-apiserver
//! has rolled out; DNS is switched before that, since nothing answers under the old address any more.

use botanist::Botanist;
use flow::{Flow, Graph, TaskId};
use runtime::Error;

use super::{
    backup_steps::{self, Backups},
    exposure_steps::expose,
    graph::{RETRY_LIMIT, graph},
};

/// What the flow depends on, found out before it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The control plane comes from another seed.
    pub restoring: bool,
    /// The seed has backups configured.
    pub has_backup: bool,
    /// The backups lie in another bucket and etcd was not restored yet (`is_copy_of_backups_required`).
    pub copy_is_required: bool,
}

/// Builds the flow.
#[must_use]
pub fn build(b: &Botanist, facts: Facts) -> Flow<'_, Error> {
    let name = if facts.restoring {
        "Shoot cluster restoration"
    } else {
        "Shoot cluster reconciliation"
    };
    let mut g = graph(name, RETRY_LIMIT);

    let namespace = g.step("Deploying Shoot namespace in Seed", [], || b.deploy_namespace());
    let identity = g.step("Ensuring Shoot cluster identity", namespace, || {
        b.ensure_shoot_cluster_identity()
    });
    let credentials = g.step("Deploying cloud provider account secret", namespace, || {
        b.deploy_cloud_provider_secret()
    });
    let secrets = g.step("Initializing secrets management", namespace, || {
        b.initialize_secrets_management()
    });

    let backups = Backups {
        kept: facts.has_backup,
        copy: facts.has_backup && facts.copy_is_required,
    };
    let prepared = backup_steps::prepare(&mut g, b, backups, namespace, [secrets, credentials]);
    let early = "Deploying events etcd while backups are copied";
    g.step_if(backups.copy, early, secrets, || b.deploy_events_etcd());
    let etcd = g.step(
        "Deploying main and events etcd",
        [secrets, credentials, prepared],
        || b.deploy_etcds(),
    );
    let etcd_ready = g.step("Waiting until main and event etcd report readiness", etcd, || {
        b.wait_until_etcds_ready()
    });
    // A shoot that was brought back to life where it was may have had its final snapshot.
    let restored = facts.restoring && facts.has_backup;
    g.step_if(restored, "Resuming backups", etcd_ready, || b.resume_backups());
    backup_steps::drop_source(&mut g, b, restored, etcd_ready);

    let address = expose(&mut g, b, [namespace, identity, secrets]);

    // The cloud is touched only after the source's backups are here: by then the source has stopped (R17-31, I3).
    let infrastructure = deploy_infrastructure(&mut g, b, [secrets, credentials, prepared]);

    let api = g.step(
        "Deploying Kubernetes API server",
        [secrets, etcd_ready, address],
        || b.deploy_kube_apiserver(),
    );
    let api_ready = g.step("Waiting until Kubernetes API server rolled out", api, || {
        b.wait_until_kube_apiserver_ready()
    });
    g.step("Deploying kubeconfig of the Shoot", [secrets, address], || {
        b.deploy_kubeconfig()
    });

    complete_control_plane(&mut g, b, [secrets, credentials, infrastructure, api_ready]);
    g.compile()
}

fn deploy_infrastructure<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, after: [TaskId; 3]) -> TaskId {
    let deploy = g.step("Deploying Shoot infrastructure", after, || async {
        b.infrastructure().deploy().await
    });
    g.step(
        "Waiting until shoot infrastructure has been reconciled",
        deploy,
        || async { b.infrastructure().wait_until_ready().await },
    )
}

/// What needs the API: the provider's part, the controllers, the scheduler. Last, controllers move from one manager to another
/// if the Shoot wants it (RK-05). That waits for the managers by itself: one that does not start because of a step must not
/// stand in the way of its being taken back.
fn complete_control_plane<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, after: [TaskId; 4]) {
    let api_ready = after[3];
    let connected = g.step("Initializing connection to Shoot", api_ready, || {
        b.wait_until_shoot_client_ready()
    });
    let rights = g.step(
        "Deploying rights of the cloud controller manager in Shoot",
        connected,
        || b.deploy_cloud_controller_manager_rights(),
    );
    let provider = g.step(
        "Deploying shoot control plane components",
        after.into_iter().chain(rights),
        || async { b.control_plane().deploy().await },
    );
    g.step(
        "Waiting until shoot control plane has been reconciled",
        provider,
        || async { b.control_plane().wait_until_ready().await },
    );
    let controllers = g.step("Deploying Kubernetes controller manager", api_ready, || {
        b.deploy_kube_controller_manager()
    });
    let scheduler = g.step("Deploying Kubernetes scheduler", api_ready, || {
        b.deploy_kube_scheduler()
    });
    g.step(
        "Waiting until Kubernetes controller manager is ready",
        controllers,
        || b.wait_until_kube_controller_manager_ready(),
    );
    g.step("Waiting until Kubernetes scheduler is ready", scheduler, || {
        b.wait_until_kube_scheduler_ready()
    });
    g.step(
        "Handing over controllers between managers",
        [provider, controllers],
        || b.hand_over_controllers(),
    );
}
