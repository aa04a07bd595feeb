//! The order in which a control plane and all that it owns outside is taken down (flows.md 3.3).
//!
//! The control plane is brought up first where it is down, since objects of users in the shoot may hold cloud resources
//! that only the shoot's own controllers can release. The BackupEntry is not touched: it follows the Shoot by its owner
//! reference, after its grace period.

use botanist::Botanist;
use flow::{Flow, Graph, TaskId};
use runtime::Error;

use super::{
    graph::{RETRY_LIMIT, graph},
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

    let resources = g.step("Deleting Managed Resources", cleaned, || {
        b.delete_managed_resources()
    });
    let resources_gone = g.step("Waiting until ManagedResources are deleted", resources, || {
        b.wait_until_managed_resources_deleted()
    });
    let extensions = g.step("Deleting extension resources", resources_gone, || {
        b.delete_extension_resources()
    });
    let extensions_gone = g.step(
        "Waiting until extension resources have been deleted",
        extensions,
        || b.wait_until_extension_resources_deleted(),
    );
    let provider = g.step("Destroying shoot control plane", extensions_gone, || async {
        b.control_plane().delete().await
    });
    let provider_gone = g.step(
        "Waiting until shoot control plane has been destroyed",
        provider,
        || async { b.control_plane().wait_until_deleted().await },
    );
    let stopped = stop_control_plane(&mut g, b, provider_gone);
    let external_gone = delete_external(&mut g, b, stopped);
    delete_the_rest(&mut g, b, external_gone);
    g.compile()
}

/// Removes what users left in the shoot, through its own API.
fn clean_shoot<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, facts: Facts) -> TaskId {
    let wanted = facts.namespace_is_active && facts.control_plane_is_up;
    let namespace = g.step_if(wanted, "Deploying Shoot namespace in Seed", [], || {
        b.deploy_namespace()
    });
    let secrets = g.step_if(wanted, "Initializing secrets management", namespace, || {
        b.initialize_secrets_management()
    });
    let etcd = g.step_if(wanted, "Deploying main and events etcd", secrets, || {
        b.deploy_etcds()
    });
    let etcd_ready = g.step_if(
        wanted,
        "Waiting until main and event etcd report readiness",
        etcd,
        || b.wait_until_etcds_ready(),
    );
    let api = g.step_if(wanted, "Deploying Kubernetes API server", etcd_ready, || {
        b.deploy_kube_apiserver()
    });
    let api_ready = g.step_if(
        wanted,
        "Waiting until Kubernetes API server rolled out",
        api,
        || b.wait_until_kube_apiserver_ready(),
    );
    let controllers = g.step_if(
        wanted,
        "Deploying Kubernetes controller manager",
        api_ready,
        || b.deploy_kube_controller_manager(),
    );
    g.step_if(wanted, "Cleaning kubernetes resources", controllers, || {
        b.clean_kubernetes_resources()
    })
}

/// Removes what lies outside the seed: DNS records and infrastructure.
fn delete_external<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, after: TaskId) -> TaskId {
    let records = g.step("Destroying DNS records", after, || b.delete_dns_records());
    let records_gone = g.step("Waiting until DNSRecords have been deleted", records, || {
        b.wait_until_dns_records_deleted()
    });
    let infrastructure = g.step("Destroying shoot infrastructure", after, || async {
        b.infrastructure().delete().await
    });
    g.step(
        "Waiting until shoot infrastructure has been destroyed",
        [infrastructure, records_gone],
        || async { b.infrastructure().wait_until_deleted().await },
    )
}
