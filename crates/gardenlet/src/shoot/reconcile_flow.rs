//! The order in which a control plane is made, kept, or restored on a new seed (flows.md 3.2; R7-05: one flow for all).
//!
//! A restore differs in three places only: secrets come from the ShootState, extension resources are given their state
//! back, and the backups of the source seed are copied before etcd starts. The API is writable again when kube-apiserver
//! has rolled out; DNS is switched before that, since nothing answers under the old address any more.

use botanist::Botanist;
use flow::{Flow, Graph, Task, TaskId};
use runtime::Error;

use super::{RETRY_LIMIT, graph};

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

    let namespace = g.add(Task::new("Deploying Shoot namespace in Seed", || {
        b.deploy_namespace()
    }));
    let identity = g.add(
        Task::new("Ensuring Shoot cluster identity", || {
            b.ensure_shoot_cluster_identity()
        })
        .after(namespace),
    );
    let credentials = g.add(
        Task::new("Deploying cloud provider account secret", || {
            b.deploy_cloud_provider_secret()
        })
        .after(namespace),
    );
    let secrets = g.add(
        Task::new("Initializing secrets management", || {
            b.initialize_secrets_management()
        })
        .after(namespace),
    );

    let backups = prepare_backups(&mut g, b, facts, namespace, [secrets, credentials]);
    let etcd = g.add(
        Task::new("Deploying main and events etcd", || b.deploy_etcds())
            .after([secrets, credentials])
            .after(backups),
    );
    let etcd_ready = g.add(
        Task::new("Waiting until main and event etcd report readiness", || {
            b.wait_until_etcds_ready()
        })
        .after(etcd),
    );
    drop_source_backups(&mut g, b, facts, etcd_ready);

    let address = expose(&mut g, b, [namespace, identity, secrets]);

    // The cloud is touched only after the source's backups are here: by then the source has stopped (R17-31, I3).
    let infrastructure = deploy_infrastructure(&mut g, b, [secrets, credentials, backups]);

    let api = g.add(
        Task::new("Deploying Kubernetes API server", || b.deploy_kube_apiserver())
            .after([secrets, etcd_ready, address]),
    );
    let api_ready = g.add(
        Task::new("Waiting until Kubernetes API server rolled out", || {
            b.wait_until_kube_apiserver_ready()
        })
        .after(api),
    );
    g.add(Task::new("Deploying kubeconfig of the Shoot", || b.deploy_kubeconfig()).after([secrets, address]));

    complete_control_plane(&mut g, b, [secrets, credentials, infrastructure, api_ready]);
    g.compile()
}

/// Own BackupEntry; for a restore the source's one first, then a copy of its backups (R17-22..29).
fn prepare_backups<'a>(
    g: &mut Graph<'a, Error>,
    b: &'a Botanist,
    facts: Facts,
    namespace: TaskId,
    secrets: [TaskId; 2],
) -> TaskId {
    let copy = facts.has_backup && facts.copy_is_required;
    let source = g.add(
        Task::new("Deploying source backup entry", || b.deploy_source_backup_entry())
            .after(namespace)
            .skip_if(!copy),
    );
    let source_ready = g.add(
        Task::new(
            "Waiting until the source backup entry has been reconciled",
            || b.wait_until_source_backup_entry_reconciled(),
        )
        .after(source)
        .skip_if(!copy),
    );
    let own = g.add(
        Task::new("Deploying backup entry", || b.deploy_backup_entry())
            .after([namespace, source_ready])
            .skip_if(!facts.has_backup),
    );
    let own_ready = g.add(
        Task::new("Waiting until the backup entry has been reconciled", || {
            b.wait_until_backup_entry_reconciled()
        })
        .after(own)
        .skip_if(!facts.has_backup),
    );
    let start = g.add(
        Task::new("Copying etcd backups to new seed's backup bucket", || {
            b.deploy_etcd_copy()
        })
        .after(secrets)
        .after([source_ready, own_ready])
        .skip_if(!copy),
    );
    let copied = g.add(
        Task::new("Waiting until etcd backups are copied", || {
            b.wait_until_etcd_backups_copied()
        })
        .after(start)
        .skip_if(!copy),
    );
    g.add(
        Task::new("Destroying copy of etcd backups", || b.destroy_etcd_copy())
            .after(copied)
            .skip_if(!copy),
    )
}

/// The source's BackupEntry is needed until etcd runs here.
fn drop_source_backups<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, facts: Facts, etcd_ready: TaskId) {
    let skip = !(facts.restoring && facts.has_backup);
    let destroy = g.add(
        Task::new("Destroying source backup entry", || {
            b.destroy_source_backup_entry()
        })
        .after(etcd_ready)
        .skip_if(skip),
    );
    g.add(
        Task::new("Waiting until the source backup entry has been deleted", || {
            b.wait_until_source_backup_entry_deleted()
        })
        .after(destroy)
        .skip_if(skip),
    );
}

/// The address under which the API is reached: the seed's front, the SNI rule, and the DNS records.
fn expose<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, after: [TaskId; 3]) -> TaskId {
    let service = g.add(
        Task::new(
            "Deploying Kubernetes API server service in the Seed cluster",
            || b.deploy_kube_apiserver_service(),
        )
        .after(after),
    );
    let exposure = g.add(
        Task::new("Exposing Kubernetes API server by its names", || {
            b.deploy_exposure()
        })
        .after(service),
    );
    let front = g.add(
        Task::new(
            "Waiting until Kubernetes API server service in the Seed cluster has reported readiness",
            || b.wait_until_kube_apiserver_service_ready(),
        )
        .after(service),
    );
    let internal = g.add(
        Task::new("Deploying internal domain DNS record", || {
            b.deploy_internal_dns_record()
        })
        .after([exposure, front]),
    );
    let external = g.add(
        Task::new("Deploying external domain DNS record", || {
            b.deploy_external_dns_record()
        })
        .after([exposure, front]),
    );
    g.add(
        Task::new("Waiting until DNS records are ready", || {
            b.wait_until_dns_records_ready()
        })
        .after([internal, external]),
    );
    service
}

fn deploy_infrastructure<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, after: [TaskId; 3]) -> TaskId {
    let deploy = g.add(
        Task::new("Deploying Shoot infrastructure", || async {
            b.infrastructure().deploy().await
        })
        .after(after),
    );
    g.add(
        Task::new(
            "Waiting until shoot infrastructure has been reconciled",
            || async { b.infrastructure().wait_until_ready().await },
        )
        .after(deploy),
    )
}

/// What needs the API: the provider's part, the controllers, the scheduler. Last, controllers move from one manager to another
/// if the Shoot wants it (RK-05). That waits for the managers by itself: one that does not start because of a step must not
/// stand in the way of its being taken back.
fn complete_control_plane<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, after: [TaskId; 4]) {
    let api_ready = after[3];
    let connected = g.add(
        Task::new("Initializing connection to Shoot", || {
            b.wait_until_shoot_client_ready()
        })
        .after(api_ready),
    );
    let rights = g.add(
        Task::new(
            "Deploying rights of the cloud controller manager in Shoot",
            || b.deploy_cloud_controller_manager_rights(),
        )
        .after(connected),
    );
    let provider = g.add(
        Task::new("Deploying shoot control plane components", || async {
            b.control_plane().deploy().await
        })
        .after(after)
        .after(rights),
    );
    g.add(
        Task::new(
            "Waiting until shoot control plane has been reconciled",
            || async { b.control_plane().wait_until_ready().await },
        )
        .after(provider),
    );
    let controllers = g.add(
        Task::new("Deploying Kubernetes controller manager", || {
            b.deploy_kube_controller_manager()
        })
        .after(api_ready),
    );
    let scheduler =
        g.add(Task::new("Deploying Kubernetes scheduler", || b.deploy_kube_scheduler()).after(api_ready));
    g.add(
        Task::new("Waiting until Kubernetes controller manager is ready", || {
            b.wait_until_kube_controller_manager_ready()
        })
        .after(controllers),
    );
    g.add(
        Task::new("Waiting until Kubernetes scheduler is ready", || {
            b.wait_until_kube_scheduler_ready()
        })
        .after(scheduler),
    );
    g.add(
        Task::new("Handing over controllers between managers", || {
            b.hand_over_controllers()
        })
        .after([provider, controllers]),
    );
}
