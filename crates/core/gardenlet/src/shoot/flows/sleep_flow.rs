//! The order in which a hibernated shoot is reconciled, or restored in a new seed, without waking the shoot
//! (R17-54; docs/operate/hibernation.md).
//!
//! No machine and no process of the control plane runs. The flow keeps all parts that do not need the API as
//! the Shoot specifies, so that the parts are complete when the shoot wakes. These are secrets, names,
//! networks, and extension objects with their state. The flow wakes only etcd, and only in two cases. After a
//! move, the new seed must prove the data before the former seed deletes its copy. The second case is an
//! earlier run that ended before etcd had stopped.

use flow::TaskId;
use parts::{
    Backups, ClaimEvidence, ClaimPlan, ContainerRuntimes, Etcds, Facts, Infrastructure, Kubeconfig, Network,
    OperatingSystemConfigs, OwnerRecordPlan, Workers,
};

use super::{
    backup_steps::{self, BackupInputs, Prepared},
    base_steps,
    extension_steps::{self, AfterKubeAPIServer, AfterWorker, BeforeKubeAPIServer},
    graph::{RETRY_LIMIT, ShootFlow, ShootGraph, Steps, graph, when},
    kube_apiserver_exposure_steps::expose,
    sleep_steps::fall_asleep,
};
use crate::shoot::operation_hooks::HookTasks;

/// The inputs of the flow, gathered before the flow is built.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each field is an independent condition.
pub struct SleepInputs<'s> {
    /// The control plane comes from a different seed, or a move was cancelled.
    pub restoring: bool,
    /// The seed has backups configured.
    pub has_backup: bool,
    /// See [`super::reconcile_flow::ReconcileInputs`].
    pub copy_is_required: bool,
    /// etcd still runs.
    pub etcd_is_awake: bool,
    /// Whether the flow keeps or removes the owner record.
    pub owner_record: OwnerRecordPlan,
    /// The steps of the ownership protocol that apply.
    pub claim: ClaimPlan,
    /// The tasks of the hooks.
    pub hooks: &'s dyn HookTasks,
}

/// Builds the flow. `evidence`: the evidence about the source, which tasks record and read.
#[must_use]
pub fn build<'a>(f: &'a Facts, evidence: &'a ClaimEvidence, given: SleepInputs<'_>) -> ShootFlow<'a> {
    let name = if given.restoring {
        "Shoot cluster restoration in its sleep"
    } else {
        "Shoot cluster reconciliation in its sleep"
    };
    let mut g = graph(name, RETRY_LIMIT);
    let base = base_steps::lay(&mut g, f, given.owner_record, given.claim);
    let secrets = [base.secrets, base.credentials];
    let backups = BackupInputs {
        kept: given.has_backup,
        restoring: given.restoring,
        copy: given.has_backup && given.copy_is_required,
        claim: given.claim,
    };
    let Prepared { opened, held } =
        backup_steps::prepare(&mut g, (f, evidence), backups, base.owned, secrets);

    let restored = given.restoring && given.has_backup;
    let is_woken = restored || given.etcd_is_awake;
    let etcd_ready = when(&mut g, is_woken).deploy::<Etcds>(f, [base.secrets, base.credentials, opened]);
    let resumed = when(&mut g, restored).step(Backups::RESUME, &f.residency, etcd_ready);
    backup_steps::drop_source(&mut g, f, restored, etcd_ready);
    base_steps::drop_owner_record(&mut g, f, given.owner_record, etcd_ready);

    let names_after = given.claim.fences().then_some(held);
    let address = expose(&mut g, f, [base.owned, base.identity, base.secrets], names_after);
    g.step(Kubeconfig::DEPLOY, f, [base.secrets, address]);
    // As for a shoot that is awake: not before the source has stopped (R17-31, I3).
    let prepared = given
        .hooks
        .before_infrastructure(&mut g, f, [base.credentials, held]);
    let infrastructure = g.deploy::<Infrastructure>(f, [base.secrets, base.credentials, held, prepared]);
    let nodes = keep_nodes(&mut g, f, infrastructure);
    let hook_tasks = given.hooks.after_machines(&mut g, f, nodes);
    if given.restoring {
        // Extension objects are restored with their state, or the state would be lost. Work of the extensions
        // that needs the API waits until the shoot wakes.
        for phase in [BeforeKubeAPIServer, AfterKubeAPIServer, AfterWorker] {
            extension_steps::deploy(&mut g, f, phase, [infrastructure]);
        }
        when(&mut g, f.has_container_runtimes()).deploy::<ContainerRuntimes>(f, nodes);
    }
    fall_asleep(
        &mut g,
        f,
        is_woken && given.has_backup,
        [nodes, hook_tasks, resumed],
    );
    g.compile()
}

/// The objects of machines that are kept without machines. Objects inside the shoot are written when the
/// shoot wakes.
fn keep_nodes<'a>(g: &mut ShootGraph<'a>, f: &'a Facts, infrastructure: TaskId) -> TaskId {
    let mut g = when(g, f.has_workers());
    let network = g.deploy::<Network>(f, infrastructure);
    let first = g.deploy::<OperatingSystemConfigs>(f, infrastructure);
    g.deploy::<Workers>(f, [network, first])
}
