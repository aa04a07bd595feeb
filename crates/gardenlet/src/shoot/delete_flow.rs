//! The order in which a control plane and all that it owns outside is taken down (flows.md 3.3).
//!
//! The control plane is brought up first where it is down, since objects of users in the shoot may hold cloud resources
//! that only the shoot's own controllers can release. The BackupEntry is not touched: it follows the Shoot by its owner
//! reference, after its grace period.

use flow::{Flow, Graph, TaskId};
use parts::{
    ControlPlane, Deploy, DnsRecords, Etcds, Facts, GenericExtensions, Infrastructure, KubeApiserver,
    KubeControllerManager, ManagedResources, Namespace, Secrets, ShootObjects, Writers,
};
use runtime::Error;

use super::{
    graph::{RETRY_LIMIT, Steps, graph, when},
    take_down::delete_the_rest,
};

/// What of the control plane is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// The namespace exists and is not being deleted.
    pub namespace_is_active: bool,
    /// kube-apiserver exists: objects in the shoot may be left.
    pub control_plane_is_up: bool,
}

/// Builds the flow.
#[must_use]
pub fn build(f: &Facts, given: Given) -> Flow<'_, Error> {
    let mut g = graph("Shoot cluster deletion", RETRY_LIMIT);
    let cleaned = clean_shoot(&mut g, f, given);
    let resources_gone = g.destroy::<ManagedResources>(f, cleaned);
    let extensions_gone = g.destroy::<GenericExtensions>(f, resources_gone);
    let provider_gone = g.destroy::<ControlPlane>(f, extensions_gone);
    let stopped = g.destroy::<Writers>(f, provider_gone);
    // What lies outside the seed.
    let records_gone = g.destroy::<DnsRecords>(f, stopped);
    let infrastructure_gone = g.destroy::<Infrastructure>(f, stopped);
    delete_the_rest(&mut g, f, [records_gone, infrastructure_gone]);
    g.compile()
}

/// Removes what users left in the shoot, through its own API.
fn clean_shoot<'a>(g: &mut Graph<'a, Error>, f: &'a Facts, given: Given) -> TaskId {
    let mut g = when(g, given.namespace_is_active && given.control_plane_is_up);
    let namespace = g.step("Deploying Shoot namespace in Seed", [], || Namespace::deploy(f));
    let secrets = g.step("Initializing secrets management", namespace, || {
        Secrets::deploy(f)
    });
    let etcd_ready = g.deploy::<Etcds>(f, secrets);
    let api_ready = g.deploy::<KubeApiserver>(f, etcd_ready);
    let controllers = g.step("Deploying Kubernetes controller manager", api_ready, || {
        KubeControllerManager::deploy(f)
    });
    g.step("Cleaning kubernetes resources", controllers, || {
        ShootObjects::clean(f)
    })
}
