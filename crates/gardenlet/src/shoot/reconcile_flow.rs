//! The order in which a control plane is made, kept, or restored on a new seed (flows.md 3.2; R7-05: one flow
//! for all).
//!
//! A restore differs in three places only: secrets come from the ShootState, extension resources are given
//! their state back, and the backups of the source seed are copied before etcd starts. The API is writable
//! again when kube-apiserver has rolled out; DNS is switched before that, since nothing answers under the old
//! address any more.

use flow::{Flow, Graph, TaskId};
use parts::{
    ApiProxy, Backups, ClaimPlan, ContainerRuntimes, ControlPlane, ControllerLeaders, CoreDns, Etcds, Facts,
    Infrastructure, KubeApiserver, KubeControllerManager, KubeProxy, KubeScheduler, Kubeconfig, Network,
    NodeExtensions, NodeRights, OperatingSystemConfigs, OwnerRecordPlan, ShootApi, TunnelAgents,
    TunnelServer, Workers,
};
use runtime::Error;

use super::{
    backup_steps::{self, Prepared, Wanted},
    base_steps::{self, Base},
    exposure_steps::expose,
    extension_steps::{self, AfterKubeAPIServer, AfterWorker, BeforeKubeAPIServer},
    graph::{RETRY_LIMIT, Steps, graph, when},
    sleep_steps::fall_asleep,
    zone_steps::{self, Zones},
};

/// What the flow depends on, found out before it is built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // Each is a question of its own.
pub struct Given {
    /// The control plane comes from another seed.
    pub restoring: bool,
    /// The seed has backups configured.
    pub has_backup: bool,
    /// The backups lie in another bucket and etcd was not restored yet (`is_copy_of_backups_required`).
    pub copy_is_required: bool,
    /// The shoot is to sleep when all of it is as it should be: its providers are told so and leave it no
    /// machine.
    pub sleeps: bool,
    /// What becomes of the owner record.
    pub owner_record: OwnerRecordPlan,
    /// What of the protocol of ownership is to be kept.
    pub claim: ClaimPlan,
    /// What is to be done with zones.
    pub zones: Zones,
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

    let Base {
        namespace,
        owned,
        identity,
        credentials,
        secrets,
    } = base_steps::lay(&mut g, f, given.owner_record, given.claim);

    let backups = Wanted {
        kept: given.has_backup,
        restoring: given.restoring,
        copy: given.has_backup && given.copy_is_required,
        claim: given.claim,
    };
    let Prepared { opened, held } = backup_steps::prepare(&mut g, f, backups, owned, [secrets, credentials]);
    let early = "Deploying events etcd while backups are copied";
    when(&mut g, backups.copy).step(early, secrets, || Etcds::deploy_events(f));
    let etcd_ready = g.deploy::<Etcds>(f, [secrets, credentials, opened]);
    // A shoot that was brought back to life where it was may have had its final snapshot.
    let restored = given.restoring && given.has_backup;
    when(&mut g, restored).step("Resuming backups", etcd_ready, || Backups::resume(f));
    backup_steps::drop_source(&mut g, f, restored, etcd_ready);
    base_steps::drop_owner_record(&mut g, f, given.owner_record, etcd_ready);

    // Names that the source has let go of need not wait for the copy: a planned move is not to be slower for
    // its record.
    let names_after = given.claim.fences().then_some(held);
    let address = expose(&mut g, f, [owned, identity, secrets], names_after);

    // The cloud is touched only after the source's backups are here, and where phases are recorded after gate
    // C: by then the source has stopped (R17-31, I3).
    let zones_open = zone_steps::open(&mut g, f, given.zones, [credentials, held]);
    let infrastructure = g.deploy::<Infrastructure>(f, [secrets, credentials, held, zones_open]);

    let early = extension_steps::deploy(
        &mut g,
        f,
        BeforeKubeAPIServer,
        [secrets, credentials, infrastructure],
    );
    // It is asked by the API server, and takes no time that a move would notice: nobody waits for it but the
    // end.
    let [tunnel, _] = g.deploy_in_two::<TunnelServer>(f, [namespace, secrets]);
    let before_api = [secrets, etcd_ready, address, tunnel].into_iter().chain(early);
    let api_ready = g.deploy::<KubeApiserver>(f, before_api);
    g.step("Deploying kubeconfig of the Shoot", [secrets, address], || {
        Kubeconfig::deploy(f)
    });

    let after = [secrets, credentials, infrastructure, api_ready];
    let [connected, provider] = complete_control_plane(&mut g, f, after, held);
    let extended = extension_steps::deploy(&mut g, f, AfterKubeAPIServer, [connected]);
    let machines = make_nodes(&mut g, f, [infrastructure, connected, provider], extended);
    zone_steps::close(&mut g, f, given.zones, machines);
    extension_steps::deploy(&mut g, f, AfterWorker, [connected, machines]);
    extension_steps::delete_stale(&mut g, f, connected);
    if given.sleeps {
        let all = g.ends();
        fall_asleep(&mut g, f, given.has_backup, all);
    }
    g.compile()
}

/// What needs the API: the provider's part, the controllers, the scheduler. Last, controllers move from one
/// manager to another if the Shoot wants it (RK-05). That waits for the managers by itself: one that does not
/// start because of a step must not stand in the way of its being taken back. Extensions follow the
/// connection, so that it waits for `held` also where nothing else before it does.
fn complete_control_plane<'a>(
    g: &mut Graph<'a, Error>,
    f: &'a Facts,
    after: [TaskId; 4],
    held: TaskId,
) -> [TaskId; 2] {
    let api_ready = after[3];
    let connected = g.step("Initializing connection to Shoot", [api_ready, held], || {
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
    [connected, provider]
}

/// The machines and what runs on all of them. Machines that are there already, as after a move, find the API
/// under its name by themselves; nothing here is in their way.
///
/// Where no nodes are wanted, what is left of some goes: machines first, then what they needed, and what ran
/// on them.
fn make_nodes<'a>(
    g: &mut Graph<'a, Error>,
    f: &'a Facts,
    after: [TaskId; 3],
    extended: Option<TaskId>,
) -> TaskId {
    let [infrastructure, connected, provider] = after;
    let after = [infrastructure, connected];
    let mut unwanted = when(g, !f.has_workers());
    let machines_gone = unwanted.destroy::<Workers>(f, after);
    unwanted.destroy::<NodeExtensions>(f, machines_gone);

    let mut nodes = when(g, f.has_workers());
    let rights = nodes.step("Deploying rights of nodes in Shoot", after[1], || {
        NodeRights::deploy(f)
    });
    let network = nodes.deploy::<Network>(f, after);
    // Providers of extensions may have a say in what machines run at first, and so has the ControlPlane: its
    // cloud-controller-manager, which this step looks for once the ControlPlane is written. A ControlPlane
    // that is not ready holds up no machine.
    let first =
        nodes.deploy::<OperatingSystemConfigs>(f, after.into_iter().chain(extended).chain([provider]));
    let machines = nodes
        .within(zone_steps::patience(f))
        .deploy::<Workers>(f, [rights, network, first]);
    let stale = nodes.step("Deleting stale operating system configurations", machines, || {
        OperatingSystemConfigs::delete_stale(f)
    });
    nodes.step(
        "Waiting until stale operating system configurations have been deleted",
        stale,
        || OperatingSystemConfigs::stale_gone(f),
    );
    keep_container_runtimes(g, f, machines);

    let after = [after[0], after[1], machines_gone];
    g.deploy::<KubeProxy>(f, after);
    g.deploy::<CoreDns>(f, after);
    g.deploy::<ApiProxy>(f, after);
    g.deploy::<TunnelAgents>(f, after);
    machines
}

/// What runs containers on nodes that are there, beside what they came with.
fn keep_container_runtimes<'a>(g: &mut Graph<'a, Error>, f: &'a Facts, machines: TaskId) {
    when(g, f.has_container_runtimes()).deploy::<ContainerRuntimes>(f, machines);
    let mut nodes = when(g, f.has_workers());
    let stale = nodes.step("Deleting stale container runtime resources", machines, || {
        ContainerRuntimes::delete_stale(f)
    });
    nodes.step(
        "Waiting until stale container runtime resources have been deleted",
        stale,
        || ContainerRuntimes::stale_gone(f),
    );
}
