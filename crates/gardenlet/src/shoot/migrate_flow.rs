//! The order of a planned move in the source seed (GEP-7 R7-47; flows.md 3.1).
//!
//! While the shoot's API still answers, backups are tried, extension resources are migrated, and the state of
//! the shoot is persisted. Then the API is stopped and cannot be written any more; what is left to let go
//! lets go, and the final snapshot is taken and proved. That is all: the hand-over, one write of
//! `status.seedName`, follows when this flow has succeeded (`controller.rs`), and what is left here is
//! cleaned up after it (`leave_flow.rs`). Until that write the move can be called off, and nothing that a
//! restore would need is gone.

use flow::{Flow, Graph, TaskId};
use parts::{
    AllExtensions, Backups, ControlPlane, Departure, DnsRecords, Etcds, Facts, GenericExtensions,
    Infrastructure, ManagedResources, Migrate, Namespace, OwnerRecord, Secrets, ShootState, Writers,
};
use runtime::Error;
use std::time::Duration;

use super::{
    extension_steps::{self, AfterKubeAPIServer, BeforeKubeAPIServer},
    graph::{Steps, graph, when},
};

/// Time for the attempts of a task here: a move that cannot go on is run again from the start after this,
/// with fresh facts.
const LIMIT: Duration = Duration::from_secs(10 * 60);

/// What of the control plane is still there. A flow that is run again finds less and skips what is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Given {
    /// kube-apiserver exists: the shoot can still be written.
    pub control_plane_is_up: bool,
    /// The seed says, or has said, whose the shoot is.
    pub owner_record: bool,
}

/// Builds the flow.
#[must_use]
pub fn build(f: &Facts, given: Given) -> Flow<'_, Error> {
    let mut g = graph("Shoot cluster preparation for migration", LIMIT);

    // What the steps below need to be there, also when an earlier run was interrupted.
    let namespace = g.step("Looking for the shoot's namespace in Seed", [], || {
        Namespace::check_is_active(f)
    });
    let secrets = g.step("Initializing secrets management", namespace, || {
        Secrets::deploy(f)
    });
    let etcd_ready = g.deploy::<Etcds>(f, secrets);
    let backups = when(&mut g, given.control_plane_is_up).step(
        "Checking that backups can be taken",
        etcd_ready,
        || Backups::check(f),
    );

    let servers = when(&mut g, given.owner_record && given.control_plane_is_up).step(
        "Checking that no DNS server contradicts the owner record",
        namespace,
        || Departure::check_servers(f),
    );

    let carried = when(&mut g, given.control_plane_is_up).step(
        "Checking that the state of the shoot can be carried",
        namespace,
        || ShootState::check(f),
    );

    // Until etcd's epoch ends, a call-off goes on in it.
    let leaving = when(&mut g, given.owner_record).step(
        "Recording that the seed begins to leave the shoot",
        [backups, servers, carried],
        || Departure::begin(f),
    );
    let early = migrate_early_extensions(&mut g, f, leaving);
    let credentials = g.step("Refreshing credentials of DNS records", namespace, || {
        DnsRecords::refresh_credentials(f)
    });

    // From here on the shoot's API cannot be written.
    let stopped = g.destroy::<Writers>(f, [etcd_ready, early, credentials]);
    // From here on it has no owner. Whoever asks for one stops, and takes the final snapshot if that is its
    // duty (R17-50). The garden knows before: nothing leads back into an epoch whose owner was denied.
    let sealing = when(&mut g, given.owner_record).step(
        "Recording that etcd will not serve again in this epoch",
        stopped,
        || Departure::seal(f),
    );
    let disowned = when(&mut g, given.owner_record).migrate::<OwnerRecord>(f, sealing);
    let late = migrate_late_extensions(&mut g, f, stopped, disowned);
    let snapshot = g.step("Creating ETCD Snapshot", [disowned, etcd_ready], || {
        Backups::take_final_snapshot(f)
    });
    g.step(
        "Making sure that nothing writes to the shoot any more",
        [late, snapshot],
        || Writers::check_gone(f),
    );
    g.compile()
}

/// What does not serve the API: let go of, and persisted, while the API still answers. Objects in the shoot
/// stay; only what keeps them in shape here goes (RX-02, RX-23).
fn migrate_early_extensions<'a>(g: &mut Graph<'a, Error>, f: &'a Facts, after: TaskId) -> TaskId {
    let keep = g.step(
        "Configuring Managed Resources objects to be kept in the Shoot",
        after,
        || ManagedResources::keep_objects(f),
    );
    let resources_gone = g.destroy::<ManagedResources>(f, keep);
    let extensions = g.migrate::<GenericExtensions>(f, resources_gone);
    let further = extension_steps::migrate(g, f, BeforeKubeAPIServer, resources_gone);
    let stale_gone = extension_steps::delete_stale(g, f, extensions);
    let control_plane = g.migrate::<ControlPlane>(f, [extensions, further, stale_gone]);
    g.step("Persisting ShootState in garden cluster", control_plane, || {
        ShootState::persist(f)
    })
}

/// Infrastructure, DNS records, and extensions that want to be late: let go of after the API has stopped.
/// Their state is persisted once more, since it may have been written by the migrate operation itself
/// (RX-11).
fn migrate_late_extensions<'a>(
    g: &mut Graph<'a, Error>,
    f: &'a Facts,
    after: TaskId,
    disowned: TaskId,
) -> TaskId {
    let infrastructure = g.migrate::<Infrastructure>(f, after);
    let records = g.migrate::<DnsRecords>(f, after);
    let further = extension_steps::migrate(g, f, AfterKubeAPIServer, after);
    // Whatever kind there is by now: nothing may be left that has not let go. The owner record is one of
    // them.
    let all = g.step(
        "Waiting until everything has been migrated",
        [infrastructure, records, further, disowned],
        || AllExtensions::migrated(f),
    );
    g.step("Persisting late state in ShootState", all, || {
        ShootState::persist(f)
    })
}
