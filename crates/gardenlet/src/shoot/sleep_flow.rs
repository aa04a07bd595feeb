//! The order in which a shoot that sleeps is kept, or restored on a new seed, without waking it (R17-54;
//! docs/operate/hibernation.md).
//!
//! Nothing of it runs: no machine and no process of the control plane. What does not need the API is kept as
//! the Shoot says, so that all of it is there when the shoot wakes: secrets, names, networks, the objects of
//! extensions with their state. Only etcd is woken, alone, and only where it has to be: after a move, so that
//! its data are proved on the new seed before the former one deletes its own; and where an earlier run ended
//! before it had stopped.

use flow::{Flow, Graph, TaskId};
use parts::{
    Backups, ClaimPlan, ContainerRuntimes, Etcds, Facts, Infrastructure, Kubeconfig, Network,
    OperatingSystemConfigs, OwnerRecordPlan, Workers,
};
use runtime::Error;

use super::{
    backup_steps::{self, Prepared, Wanted},
    base_steps,
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
    /// The control plane comes from another seed, or a move was called off.
    pub restoring: bool,
    /// The seed has backups configured.
    pub has_backup: bool,
    /// See [`super::reconcile_flow::Given`].
    pub copy_is_required: bool,
    /// etcd still runs.
    pub etcd_is_awake: bool,
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
        "Shoot cluster restoration in its sleep"
    } else {
        "Shoot cluster reconciliation in its sleep"
    };
    let mut g = graph(name, RETRY_LIMIT);
    let base = base_steps::lay(&mut g, f, given.owner_record, given.claim);
    let secrets = [base.secrets, base.credentials];
    let backups = Wanted {
        kept: given.has_backup,
        restoring: given.restoring,
        copy: given.has_backup && given.copy_is_required,
        claim: given.claim,
    };
    let Prepared { opened, held } = backup_steps::prepare(&mut g, f, backups, base.owned, secrets);

    let restored = given.restoring && given.has_backup;
    let is_woken = restored || given.etcd_is_awake;
    let etcd_ready = when(&mut g, is_woken).deploy::<Etcds>(f, [base.secrets, base.credentials, opened]);
    let resumed = when(&mut g, restored).step("Resuming backups", etcd_ready, || Backups::resume(f));
    backup_steps::drop_source(&mut g, f, restored, etcd_ready);
    base_steps::drop_owner_record(&mut g, f, given.owner_record, etcd_ready);

    let names_after = given.claim.fences().then_some(held);
    let address = expose(&mut g, f, [base.owned, base.identity, base.secrets], names_after);
    g.step(
        "Deploying kubeconfig of the Shoot",
        [base.secrets, address],
        || Kubeconfig::deploy(f),
    );
    // As for a shoot that is awake: not before the source has stopped (R17-31, I3).
    let zones_open = zone_steps::open(&mut g, f, given.zones, [base.credentials, held]);
    let infrastructure = g.deploy::<Infrastructure>(f, [base.secrets, base.credentials, held, zones_open]);
    let nodes = keep_nodes(&mut g, f, infrastructure);
    let closed = zone_steps::close(&mut g, f, given.zones, nodes);
    if given.restoring {
        // They come with their state, or it would be lost. What they need of the API waits until the shoot
        // wakes.
        for phase in [BeforeKubeAPIServer, AfterKubeAPIServer, AfterWorker] {
            extension_steps::deploy(&mut g, f, phase, [infrastructure]);
        }
        when(&mut g, f.has_container_runtimes()).deploy::<ContainerRuntimes>(f, nodes);
    }
    fall_asleep(&mut g, f, is_woken && given.has_backup, [nodes, closed, resumed]);
    g.compile()
}

/// What is kept of machines while there are none. What is wanted in the shoot itself is written when it
/// wakes.
fn keep_nodes<'a>(g: &mut Graph<'a, Error>, f: &'a Facts, infrastructure: TaskId) -> TaskId {
    let mut g = when(g, f.has_workers());
    let network = g.deploy::<Network>(f, infrastructure);
    let first = g.deploy::<OperatingSystemConfigs>(f, infrastructure);
    g.deploy::<Workers>(f, [network, first])
}
