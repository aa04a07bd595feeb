//! The order in which a control plane and its external resources are deleted (docs/understand/flows.md,
//! "Deletion").
//!
//! A stopped control plane is started first. Objects of users in the shoot may hold cloud resources that only
//! the controllers of the shoot can release. The flow does not delete the BackupEntry. The owner reference
//! deletes the BackupEntry after the Shoot, and the backups stay for a grace period.

use flow::TaskId;
use parts::{
    ControlPlane, Deploy, DnsRecords, Etcds, Facts, GenericExtensions, Infrastructure, KubeApiserver,
    KubeControllerManager, ManagedResources, Namespace, Secrets, ShootObjects, Writers,
};

use super::{
    extension_steps::{self, AfterKubeAPIServer, BeforeKubeAPIServer},
    graph::{RETRY_LIMIT, ShootFlow, ShootGraph, Steps, graph, when},
    take_down::delete_the_rest,
};
use crate::shoot::operation_hooks::HookTasks;

/// The parts of the control plane that still exist.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each field is an independent condition.
pub struct DeleteInputs<'s> {
    /// The namespace exists and is not being deleted.
    pub namespace_is_active: bool,
    /// kube-apiserver exists, awake or asleep: objects in the shoot may be left.
    pub control_plane_is_up: bool,
    /// Parts of the control plane may sleep. The ControlPlane of the provider has to wake, too: only the
    /// controllers of the ControlPlane release the external resources.
    pub control_plane_may_sleep: bool,
    /// This seed publishes the owner record, or has published the record.
    pub owner_record: bool,
    /// The tasks of the hooks.
    pub hooks: &'s dyn HookTasks,
}

/// Builds the flow.
#[must_use]
pub fn build<'a>(f: &'a Facts, given: DeleteInputs<'_>) -> ShootFlow<'a> {
    let mut g = graph("Shoot cluster deletion", RETRY_LIMIT);
    let cleaned = clean_shoot(&mut g, f, given);
    let resources_gone = g.destroy::<ManagedResources>(&f.residency, cleaned);
    let extensions_gone = g.destroy::<GenericExtensions>(&f.residency, resources_gone);
    // No machine is left by now, and the networks of the shoot still exist (RZ-14).
    let released = given.hooks.before_infrastructure_goes(&mut g, f, extensions_gone);
    // After the generic extensions: the providers of further extensions may take part in the deletion of
    // generic extensions (gardener#9651).
    let further_gone = extension_steps::destroy(&mut g, f, BeforeKubeAPIServer, extensions_gone);
    let provider_gone = g.destroy::<ControlPlane>(&f.residency, further_gone);
    let nothing_left = g.step(ManagedResources::CHECK_NO_OTHER, &f.residency, provider_gone);
    let stopped = g.destroy::<Writers>(&f.residency, nothing_left);
    let late_gone = extension_steps::destroy(&mut g, f, AfterKubeAPIServer, stopped);
    // Resources outside the seed.
    let credentials =
        when(&mut g, given.namespace_is_active).step(DnsRecords::REFRESH_CREDENTIALS, f, stopped);
    let records_gone = g.destroy::<DnsRecords>(&f.residency, credentials);
    let infrastructure_gone = g.destroy::<Infrastructure>(&f.residency, [stopped, released]);
    delete_the_rest(
        &mut g,
        f,
        [late_gone, records_gone, infrastructure_gone],
        given.owner_record,
    );
    g.compile()
}

/// Removes the objects of users through the API of the shoot.
fn clean_shoot<'a>(graph: &mut ShootGraph<'a>, f: &'a Facts, given: DeleteInputs<'_>) -> TaskId {
    let is_needed = given.namespace_is_active && given.control_plane_is_up;
    let mut g = when(graph, is_needed);
    let namespace = g.step(Namespace::DEPLOY, f, []);
    let secrets = g.step(Secrets::DEPLOY, f, namespace);
    let etcd_ready = g.deploy::<Etcds>(f, secrets);
    let api_ready = g.deploy::<KubeApiserver>(f, etcd_ready);
    let [controllers, _] = KubeControllerManager::deploy_tasks();
    let controllers = g.step(controllers, f, api_ready);
    let is_woken = is_needed && given.control_plane_may_sleep;
    let provider = when(graph, is_woken).deploy::<ControlPlane>(f, api_ready);
    when(graph, is_needed).step(ShootObjects::CLEAN, f, [controllers, provider])
}
