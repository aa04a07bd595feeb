//! The order in which a control plane is created, reconciled, or restored in a new seed
//! (docs/understand/flows.md; R7-05: a shared flow).
//!
//! A restore differs in three places only. Secrets come from the ShootState, extension resources get back
//! their state, and the backups of the source seed are copied before etcd starts. The DNS names of the API
//! change before kube-apiserver starts, because the source serves no client any more. Clients can write again
//! when the rollout of kube-apiserver is complete.

use std::time::Duration;

use flow::TaskId;
use parts::{
    ApiProxy, Backups, ClaimEvidence, ClaimPlan, ContainerRuntimes, ControlPlane, ControllerLeaders, CoreDns,
    Etcds, Facts, Infrastructure, KubeApiserver, KubeControllerManager, KubeProxy, KubeScheduler, Kubeconfig,
    Network, NodeExtensions, NodeRights, OperatingSystemConfigs, OwnerRecordPlan, ShootApi, TunnelAgents,
    TunnelServer, Workers,
};

use super::{
    backup_steps::{self, BackupInputs, Prepared},
    base_steps::{self, Base},
    extension_steps::{self, AfterKubeAPIServer, AfterWorker, BeforeKubeAPIServer},
    graph::{RETRY_LIMIT, ShootFlow, ShootGraph, Steps, graph, when},
    kube_apiserver_exposure_steps::expose,
    sleep_steps::fall_asleep,
};
use crate::shoot::operation_hooks::HookTasks;

/// The inputs of the flow, gathered before the flow is built.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each field is an independent condition.
pub struct ReconcileInputs<'s> {
    /// The control plane comes from a different seed.
    pub restoring: bool,
    /// The seed has backups configured.
    pub has_backup: bool,
    /// The backups are in a different bucket and etcd was not restored yet (`is_copy_of_backups_required`).
    pub copy_is_required: bool,
    /// The shoot goes to sleep at the end of the flow: the providers receive the hibernated Shoot and keep no
    /// machine.
    pub sleeps: bool,
    /// Whether the flow keeps or removes the owner record.
    pub owner_record: OwnerRecordPlan,
    /// The steps of the ownership protocol that apply.
    pub claim: ClaimPlan,
    /// The tasks of the hooks.
    pub hooks: &'s dyn HookTasks,
}

/// Builds the flow. `evidence`: the evidence about the source, which tasks record and read.
#[must_use]
pub fn build<'a>(f: &'a Facts, evidence: &'a ClaimEvidence, given: ReconcileInputs<'_>) -> ShootFlow<'a> {
    let name = if given.restoring {
        "Shoot cluster restoration"
    } else {
        "Shoot cluster reconciliation"
    };
    let mut g = graph(name, RETRY_LIMIT);

    let Base {
        namespace,
        owned,
        identity,
        credentials,
        secrets,
    } = base_steps::lay(&mut g, f, given.owner_record, given.claim);

    let backups = BackupInputs {
        kept: given.has_backup,
        restoring: given.restoring,
        copy: given.has_backup && given.copy_is_required,
        claim: given.claim,
    };
    let Prepared { opened, held } =
        backup_steps::prepare(&mut g, (f, evidence), backups, owned, [secrets, credentials]);
    when(&mut g, backups.copy).step(Etcds::DEPLOY_EVENTS, f, secrets);
    let etcd_ready = g.deploy::<Etcds>(f, [secrets, credentials, opened]);
    // A shoot whose move was cancelled in the same seed may have its final snapshot already.
    let restored = given.restoring && given.has_backup;
    when(&mut g, restored).step(Backups::RESUME, &f.residency, etcd_ready);
    backup_steps::drop_source(&mut g, f, restored, etcd_ready);
    base_steps::drop_owner_record(&mut g, f, given.owner_record, etcd_ready);

    // Names that the source has released need not wait for the copy: a planned move must not take longer
    // because of the owner record.
    let names_after = given.claim.fences().then_some(held);
    let address = expose(&mut g, f, [owned, identity, secrets], names_after);

    // The flow changes the cloud only after the backups of the source are here. With recorded phases the flow
    // also waits for phase `Held`: by then the source has stopped (R17-31, I3).
    let prepared = given.hooks.before_infrastructure(&mut g, f, [credentials, held]);
    let infrastructure = g.deploy::<Infrastructure>(f, [secrets, credentials, held, prepared]);

    let early = extension_steps::deploy(
        &mut g,
        f,
        BeforeKubeAPIServer,
        [secrets, credentials, infrastructure],
    );
    // The API server calls the tunnel. The tunnel starts too fast to delay a move, so only the end of the
    // flow waits until the tunnel is ready.
    let [tunnel, _] = g.deploy_in_two::<TunnelServer>(f, [namespace, secrets]);
    let before_api = [secrets, etcd_ready, address, tunnel].into_iter().chain(early);
    let api_ready = g.deploy::<KubeApiserver>(f, before_api);
    g.step(Kubeconfig::DEPLOY, f, [secrets, address]);

    let after = [secrets, credentials, infrastructure, api_ready];
    let [connected, provider] = complete_control_plane(&mut g, f, after, held);
    let extended = extension_steps::deploy(&mut g, f, AfterKubeAPIServer, [connected]);
    let after = [infrastructure, connected, provider];
    let machines = make_nodes(&mut g, f, after, extended, given.hooks.machines_limit());
    given.hooks.after_machines(&mut g, f, machines);
    extension_steps::deploy(&mut g, f, AfterWorker, [connected, machines]);
    extension_steps::delete_stale(&mut g, f, connected);
    if given.sleeps {
        let all = g.leaf_tasks();
        fall_asleep(&mut g, f, given.has_backup, all);
    }
    g.compile()
}

/// The parts that need the API: the control plane of the provider, the controllers, the scheduler. Last,
/// controllers move between managers if the Shoot requests that (RK-05). The step for that move waits for the
/// managers without a task dependency. A manager that cannot start because of a hand-over must not block the
/// reversal of the hand-over. Extensions follow the connection, so the connection waits for `held` even where
/// no earlier step does.
fn complete_control_plane<'a>(
    g: &mut ShootGraph<'a>,
    f: &'a Facts,
    after: [TaskId; 4],
    held: TaskId,
) -> [TaskId; 2] {
    let api_ready = after[3];
    let connected = g.step(ShootApi::READY, &f.residency, [api_ready, held]);
    let rights = g.step(ControllerLeaders::DEPLOY_RIGHTS, &f.residency, connected);
    let [provider, _] = g.deploy_in_two::<ControlPlane>(f, after.into_iter().chain(rights));
    let [controllers, _] = g.deploy_in_two::<KubeControllerManager>(f, api_ready);
    g.deploy::<KubeScheduler>(f, api_ready);
    g.step(ControllerLeaders::HAND_OVER, f, [provider, controllers]);
    [connected, provider]
}

/// The machines and the workloads of all nodes. Existing machines, for example after a move, find the API
/// under the unchanged name, and no step here blocks the machines.
///
/// Without workers the flow removes the leftovers of earlier workers. First the machines go, then the objects
/// that the machines needed, then the software that ran on the machines. `limit`: see
/// [`HookTasks::machines_limit`].
fn make_nodes<'a>(
    g: &mut ShootGraph<'a>,
    f: &'a Facts,
    after: [TaskId; 3],
    extended: Option<TaskId>,
    limit: Option<Duration>,
) -> TaskId {
    let [infrastructure, connected, provider] = after;
    let after = [infrastructure, connected];
    let mut unwanted = when(g, !f.has_workers());
    let machines_gone = unwanted.destroy::<Workers>(&f.residency, after);
    unwanted.destroy::<NodeExtensions>(&f.residency, machines_gone);

    let mut nodes = when(g, f.has_workers());
    let rights = nodes.step(NodeRights::DEPLOY, &f.residency, after[1]);
    let network = nodes.deploy::<Network>(f, after);
    // Providers of extensions may change the initial software of a machine, and so may the ControlPlane
    // through its cloud-controller-manager. This step checks for that manager after the ControlPlane is
    // written. A ControlPlane that is not ready delays no machine.
    let first =
        nodes.deploy::<OperatingSystemConfigs>(f, after.into_iter().chain(extended).chain([provider]));
    let machines = nodes.within(limit).deploy::<Workers>(f, [rights, network, first]);
    nodes.steps(OperatingSystemConfigs::DELETE_STALE, f, machines);
    keep_container_runtimes(g, f, machines);

    let after = [after[0], after[1], machines_gone];
    g.deploy::<KubeProxy>(f, after);
    g.deploy::<CoreDns>(f, after);
    g.deploy::<ApiProxy>(f, after);
    g.deploy::<TunnelAgents>(f, after);
    machines
}

/// Additional container runtimes of existing nodes.
fn keep_container_runtimes<'a>(g: &mut ShootGraph<'a>, f: &'a Facts, machines: TaskId) {
    when(g, f.has_container_runtimes()).deploy::<ContainerRuntimes>(f, machines);
    when(g, f.has_workers()).steps(ContainerRuntimes::DELETE_STALE, f, machines);
}
