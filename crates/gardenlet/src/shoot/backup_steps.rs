//! Steps that give etcd the backups to start from, and take away what was only needed for that.

use botanist::Botanist;
use flow::{Graph, TaskId};
use runtime::Error;

/// Which of the steps there are.
#[derive(Clone, Copy)]
pub(super) struct Backups {
    /// The seed keeps backups.
    pub kept: bool,
    /// They are in the bucket of the former seed, and are copied first.
    pub copy: bool,
}

/// Own BackupEntry; for a restore the source's one first, then a copy of its backups (R17-22..29).
pub(super) fn prepare<'a>(
    g: &mut Graph<'a, Error>,
    b: &'a Botanist,
    Backups { kept, copy }: Backups,
    namespace: TaskId,
    secrets: [TaskId; 2],
) -> TaskId {
    let [secrets, credentials] = secrets;
    let source = g.step_if(copy, "Deploying source backup entry", namespace, || {
        b.deploy_source_backup_entry()
    });
    let source_ready = g.step_if(
        copy,
        "Waiting until the source backup entry has been reconciled",
        source,
        || b.wait_until_source_backup_entry_reconciled(),
    );
    let own = g.step_if(kept, "Deploying backup entry", [namespace, source], || {
        b.deploy_backup_entry()
    });
    let own_ready = g.step_if(
        kept,
        "Waiting until the backup entry has been reconciled",
        own,
        || b.wait_until_backup_entry_reconciled(),
    );
    let start = g.step_if(
        copy,
        "Copying etcd backups to new seed's backup bucket",
        [secrets, credentials, source_ready, own_ready],
        || b.deploy_etcd_copy(),
    );
    let copied = g.step_if(copy, "Waiting until etcd backups are copied", start, || {
        b.wait_until_etcd_backups_copied()
    });
    g.step_if(copy, "Destroying copy of etcd backups", copied, || {
        b.destroy_etcd_copy()
    })
}

/// The source's BackupEntry is needed until etcd runs here.
pub(super) fn drop_source<'a>(g: &mut Graph<'a, Error>, b: &'a Botanist, wanted: bool, etcd_ready: TaskId) {
    let destroy = g.step_if(wanted, "Destroying source backup entry", etcd_ready, || {
        b.destroy_source_backup_entry()
    });
    g.step_if(
        wanted,
        "Waiting until the source backup entry has been deleted",
        destroy,
        || b.wait_until_source_backup_entry_deleted(),
    );
}
