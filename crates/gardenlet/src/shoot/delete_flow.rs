//! The order in which a control plane and all that it owns outside is taken down (flows.md 3.3).
//!
//! The control plane is brought up first where it is down, since objects of users in the shoot may hold cloud resources
//! that only the shoot's own controllers can release. The BackupEntry is not touched: it follows the Shoot by its owner
//! reference, after its grace period.

use botanist::Botanist;
use flow::{Flow, Graph, Task, TaskId};
use runtime::Error;

use super::{
    RETRY_LIMIT, graph,
    take_down::{delete_the_rest, stop_control_plane},
};

/// What of the control plane is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The namespace exists and is not being deleted.
    pub namespace_is_active: bool,
    /// kube-apiserver exists: objects in the shoot may be left.
    pub control_plane_is_up: bool,
}

/// Builds the flow.
#[must_use]
pub fn build(b: &Botanist, facts: Facts) -> Flow<'_, Error> {
    let mut g = graph("Shoot cluster deletion", RETRY_LIMIT);
    let cleaned = clean_shoot(&mut g, b, facts);

    let resources =
        g.add(Task::new("Deleting Managed Resources", || b.delete_managed_resources()).after(cleaned));
    let resources_gone = g.add(
        Task::new("Waiting until ManagedResources are deleted", || {
            b.wait_until_managed_resources_deleted()
        })
        .after(resources),
    );
    let extensions = g.add(
        Task::new("Deleting extension resources", || b.delete_extension_resources()).after(resources_gone),
    );
    let extensions_gone = g.add(
        Task::new("Waiting until extension resources have been deleted", || {
            b.wait_until_extension_resources_deleted()
        })
        .after(extensions),
    );
    let provider = g.add(
        Task::new("Destroying shoot control plane", || async {
            b.control_plane().delete().await
        })
        .after(extensions_gone),
    );
    let provider_gone = g.add(
        Task::new("Waiting until shoot control plane has been destroyed", || async {
            b.control_plane().wait_until_deleted().await
        })
        .after(provider),
    );
    let stopped = stop_control_plane(&mut g, b, provider_gone);
    let external_gone = delete_external(&mut g, b, stopped);
    delete_the_rest(&mut g, b, external_gone);
    g.compile()
}

/// Removes what users left in the shoot, through its own API.
fn clean_shoot<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, facts: Facts) -> TaskId {
    let skip = !facts.namespace_is_active || !facts.control_plane_is_up;
    let namespace =
        g.add(Task::new("Deploying Shoot namespace in Seed", || b.deploy_namespace()).skip_if(skip));
    let secrets = g.add(
        Task::new("Initializing secrets management", || {
            b.initialize_secrets_management()
        })
        .after(namespace)
        .skip_if(skip),
    );
    let etcd = g.add(
        Task::new("Deploying main and events etcd", || b.deploy_etcds())
            .after(secrets)
            .skip_if(skip),
    );
    let etcd_ready = g.add(
        Task::new("Waiting until main and event etcd report readiness", || {
            b.wait_until_etcds_ready()
        })
        .after(etcd)
        .skip_if(skip),
    );
    let api = g.add(
        Task::new("Deploying Kubernetes API server", || b.deploy_kube_apiserver())
            .after(etcd_ready)
            .skip_if(skip),
    );
    let api_ready = g.add(
        Task::new("Waiting until Kubernetes API server rolled out", || {
            b.wait_until_kube_apiserver_ready()
        })
        .after(api)
        .skip_if(skip),
    );
    let controllers = g.add(
        Task::new("Deploying Kubernetes controller manager", || {
            b.deploy_kube_controller_manager()
        })
        .after(api_ready)
        .skip_if(skip),
    );
    g.add(
        Task::new("Cleaning kubernetes resources", || b.clean_kubernetes_resources())
            .after(controllers)
            .skip_if(skip),
    )
}

/// Removes what lies outside the seed: DNS records and infrastructure.
fn delete_external<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, after: TaskId) -> TaskId {
    let records = g.add(Task::new("Destroying DNS records", || b.delete_dns_records()).after(after));
    let records_gone = g.add(
        Task::new("Waiting until DNSRecords have been deleted", || {
            b.wait_until_dns_records_deleted()
        })
        .after(records),
    );
    let infrastructure = g.add(
        Task::new("Destroying shoot infrastructure", || async {
            b.infrastructure().delete().await
        })
        .after(after),
    );
    g.add(
        Task::new(
            "Waiting until shoot infrastructure has been destroyed",
            || async { b.infrastructure().wait_until_deleted().await },
        )
        .after([infrastructure, records_gone]),
    )
}
