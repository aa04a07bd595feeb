//! The order in which a control plane and all that it owns outside is taken down (flows.md 3.3).
//!
//! The control plane is brought up first where it is down, since objects of users in the shoot may hold cloud
//! resources that only the shoot's own controllers can release. The BackupEntry is not touched: it follows
//! the Shoot by its owner reference, after its grace period.

use flow::{Flow, Graph, TaskId};
use parts::{
    ControlPlane, Deploy, DnsRecords, Etcds, Facts, GenericExtensions, Infrastructure, KubeApiserver,
    KubeControllerManager, ManagedResources, Namespace, Secrets, ShootObjects, SubnetIsolation, Writers,
};
use runtime::Error;

use super::{
    extension_steps::{self, AfterKubeAPIServer, BeforeKubeAPIServer},
    graph::{RETRY_LIMIT, Steps, graph, when},
    take_down::delete_the_rest,
};

/// What of the control plane is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // Each is a question of its own.
pub struct Given {
    /// The namespace exists and is not being deleted.
    pub namespace_is_active: bool,
    /// kube-apiserver exists, awake or asleep: objects in the shoot may be left.
    pub control_plane_is_up: bool,
    /// Parts of it may sleep: its provider's part has to be woken, too, or nobody releases what it has
    /// outside.
    pub control_plane_may_sleep: bool,
    /// The seed says, or has said, whose the shoot is.
    pub owner_record: bool,
    /// A zone is closed, or on its way there or back.
    pub zone_is_closed: bool,
}

/// Builds the flow.
#[must_use]
pub fn build(f: &Facts, given: Given) -> Flow<'_, Error> {
    let mut g = graph("Shoot cluster deletion", RETRY_LIMIT);
    let cleaned = clean_shoot(&mut g, f, given);
    let resources_gone = g.destroy::<ManagedResources>(f, cleaned);
    let extensions_gone = g.destroy::<GenericExtensions>(f, resources_gone);
    // No machine is left by now, and the networks are still there that are opened (RZ-14).
    let zones_open = when(&mut g, given.zone_is_closed).destroy::<SubnetIsolation>(f, extensions_gone);
    // After the others: their providers may have a say in what becomes of those (gardener#9651).
    let further_gone = extension_steps::destroy(&mut g, f, BeforeKubeAPIServer, extensions_gone);
    let provider_gone = g.destroy::<ControlPlane>(f, further_gone);
    let nothing_left = g.step(
        "Checking that no extension has objects in the Shoot",
        provider_gone,
        || ManagedResources::check_no_other(f),
    );
    let stopped = g.destroy::<Writers>(f, nothing_left);
    let late_gone = extension_steps::destroy(&mut g, f, AfterKubeAPIServer, stopped);
    // What lies outside the seed.
    let credentials = when(&mut g, given.namespace_is_active).step(
        "Refreshing credentials of DNS records",
        stopped,
        || DnsRecords::refresh_credentials(f),
    );
    let records_gone = g.destroy::<DnsRecords>(f, credentials);
    let infrastructure_gone = g.destroy::<Infrastructure>(f, [stopped, zones_open]);
    delete_the_rest(
        &mut g,
        f,
        [late_gone, records_gone, infrastructure_gone],
        given.owner_record,
    );
    g.compile()
}

/// Removes what users left in the shoot, through its own API.
fn clean_shoot<'a>(graph: &mut Graph<'a, Error>, f: &'a Facts, given: Given) -> TaskId {
    let is_needed = given.namespace_is_active && given.control_plane_is_up;
    let mut g = when(graph, is_needed);
    let namespace = g.step("Deploying Shoot namespace in Seed", [], || Namespace::deploy(f));
    let secrets = g.step("Initializing secrets management", namespace, || {
        Secrets::deploy(f)
    });
    let etcd_ready = g.deploy::<Etcds>(f, secrets);
    let api_ready = g.deploy::<KubeApiserver>(f, etcd_ready);
    let controllers = g.step("Deploying Kubernetes controller manager", api_ready, || {
        KubeControllerManager::deploy(f)
    });
    let is_woken = is_needed && given.control_plane_may_sleep;
    let provider = when(graph, is_woken).deploy::<ControlPlane>(f, api_ready);
    when(graph, is_needed).step("Cleaning kubernetes resources", [controllers, provider], || {
        ShootObjects::clean(f)
    })
}
