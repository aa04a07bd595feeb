//! The order of a planned move in the source seed (GEP-7 R7-47; docs/understand/flows.md, "Move, in the
//! source seed").
//!
//! While the API of the shoot still answers, the flow checks that backups can be taken. Then the flow
//! migrates extension resources, and persists the state of the shoot. Then the flow stops the API, so that no
//! client can write any more. The remaining extensions release their resources, and the final snapshot is
//! taken and verified. The hand-over, a single write of `status.seedName`, follows after this flow has
//! succeeded (`controller.rs`). The clean-up of the leftovers follows the hand-over (`leave_flow.rs`). Until
//! that write a user can cancel the move, and every object that a restore would need still exists.

use flow::TaskId;
use parts::{
    AllExtensions, Backups, ControlPlane, Departure, DnsRecords, Etcds, Facts, GenericExtensions,
    Infrastructure, ManagedResources, Namespace, OwnerRecord, ProvenEnd, Secrets, ShootState, Writers,
};
use std::time::Duration;

use super::{
    extension_steps::{self, AfterKubeAPIServer, BeforeKubeAPIServer},
    graph::{ShootFlow, ShootGraph, Steps, graph, when},
};

/// Time for the attempts of a task in this flow. After this time a stuck move restarts from the first step
/// with fresh facts.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// The parts of the control plane that still exist. A repeated flow finds fewer parts and skips the completed
/// steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MigrateInputs {
    /// kube-apiserver exists: the shoot can still be written.
    pub control_plane_is_up: bool,
    /// This seed publishes the owner record, or has published the record. Only then the flow records the
    /// phases `Leaving` and `Sealing`.
    pub keeps_phases: bool,
}

/// Builds the flow. `end`: gets the proof of the final snapshot, which the hand-over records.
#[must_use]
pub fn build<'a>(f: &'a Facts, end: &'a ProvenEnd, given: MigrateInputs) -> ShootFlow<'a> {
    let mut g = graph("Shoot cluster preparation for migration", LIMIT);

    // Objects that the steps below need, also after an interrupted run.
    let namespace = g.step(Namespace::CHECK_IS_ACTIVE, &f.residency, []);
    let secrets = g.step(Secrets::DEPLOY, f, namespace);
    let etcd_ready = g.deploy::<Etcds>(f, secrets);
    let backups = when(&mut g, given.control_plane_is_up).step(Backups::CHECK, f, etcd_ready);

    let servers = when(&mut g, given.keeps_phases && given.control_plane_is_up).step(
        Departure::CHECK_SERVERS,
        f,
        namespace,
    );

    let carried = when(&mut g, given.control_plane_is_up).step(ShootState::CHECK, f, namespace);

    // Until the epoch of etcd ends, the seed can cancel the move and stay in the same epoch.
    let leaving = when(&mut g, given.keeps_phases).step(Departure::BEGIN, f, [backups, servers, carried]);
    let early = migrate_early_extensions(&mut g, f, leaving);
    let credentials = g.step(DnsRecords::REFRESH_CREDENTIALS, f, namespace);

    // From here on the shoot's API cannot be written.
    let stopped = g.destroy::<Writers>(&f.residency, [etcd_ready, early, credentials]);
    // From here on the epoch has no owner. The processes that check the owner stop, and etcd-backup-restore
    // takes the final snapshot (R17-50). The garden records the sealed epoch first: no path leads back into
    // an epoch whose owner record was deleted.
    let sealing = when(&mut g, given.keeps_phases).step(Departure::SEAL, f, stopped);
    let [_, owner_record_deleted] =
        when(&mut g, given.keeps_phases).steps(OwnerRecord::WITHDRAW, &f.residency, sealing);
    let late = migrate_late_extensions(&mut g, f, stopped, owner_record_deleted);
    let snapshot = g.exchange(
        Backups::TAKE_FINAL_SNAPSHOT,
        (f, end),
        [owner_record_deleted, etcd_ready],
    );
    g.exchange(Backups::CONFIRM_FINAL_SNAPSHOT, (f, end), [late, snapshot]);
    g.compile()
}

/// Extensions that do not serve the API are migrated and persisted while the API still answers. Objects in
/// the shoot stay. Only the ManagedResources in the seed are deleted (RX-02, RX-23).
fn migrate_early_extensions<'a>(g: &mut ShootGraph<'a>, f: &'a Facts, after: TaskId) -> TaskId {
    let keep = g.step(ManagedResources::KEEP_OBJECTS, &f.residency, after);
    let resources_gone = g.destroy::<ManagedResources>(&f.residency, keep);
    let extensions = g.migrate::<GenericExtensions>(&f.residency, resources_gone);
    let further = extension_steps::migrate(g, f, BeforeKubeAPIServer, resources_gone);
    let stale_gone = extension_steps::delete_stale(g, f, extensions);
    let control_plane = g.migrate::<ControlPlane>(&f.residency, [extensions, further, stale_gone]);
    g.step(ShootState::PERSIST, f, control_plane)
}

/// Infrastructure, DNS records, and extensions that must be late are migrated after the API has stopped.
/// Their state is persisted again, since the migrate operation itself may have written state (RX-11).
fn migrate_late_extensions<'a>(
    g: &mut ShootGraph<'a>,
    f: &'a Facts,
    after: TaskId,
    owner_record_deleted: TaskId,
) -> TaskId {
    let infrastructure = g.migrate::<Infrastructure>(&f.residency, after);
    let records = g.migrate::<DnsRecords>(&f.residency, after);
    let further = extension_steps::migrate(g, f, AfterKubeAPIServer, after);
    // The check covers all kinds, including kinds that were added later: every object must be migrated. The
    // owner record is a DNSRecord, so the check waits for `owner_record_deleted`.
    let all = g.step(
        AllExtensions::AWAIT_MIGRATION,
        &f.residency,
        [infrastructure, records, further, owner_record_deleted],
    );
    g.step(ShootState::PERSIST_LATE, f, all)
}
