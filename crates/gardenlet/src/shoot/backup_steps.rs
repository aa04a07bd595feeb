//! Steps that give etcd the backups to start from, and take away what was only needed for that.

use flow::{Graph, TaskId};
use parts::{BackupEntry, EtcdCopy, Facts, SourceBackupEntry};
use runtime::Error;

use super::graph::{Steps, when};

/// Which of the steps there are.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// The seed keeps backups.
    pub kept: bool,
    /// They are in the bucket of the former seed, and are copied first.
    pub copy: bool,
}

/// Own BackupEntry; for a restore the source's one first, then a copy of its backups (R17-22..29).
pub(super) fn prepare<'a>(
    g: &mut Graph<'a, Error>,
    f: &'a Facts,
    Wanted { kept, copy }: Wanted,
    namespace: TaskId,
    secrets: [TaskId; 2],
) -> TaskId {
    let [secrets, credentials] = secrets;
    let [source, source_ready] = when(g, copy).deploy_in_two::<SourceBackupEntry>(f, namespace);
    let own_ready = when(g, kept).deploy::<BackupEntry>(f, [namespace, source]);
    let copied = when(g, copy).deploy::<EtcdCopy>(f, [secrets, credentials, source_ready, own_ready]);
    when(g, copy).step("Destroying copy of etcd backups", copied, || EtcdCopy::destroy(f))
}

/// The source's BackupEntry is needed until etcd runs here.
pub(super) fn drop_source<'a>(g: &mut Graph<'a, Error>, f: &'a Facts, wanted: bool, etcd_ready: TaskId) {
    let mut g = when(g, wanted);
    let destroy = g.step("Destroying source backup entry", etcd_ready, || {
        SourceBackupEntry::destroy(f)
    });
    g.step(
        "Waiting until the source backup entry has been deleted",
        destroy,
        || SourceBackupEntry::gone(f),
    );
}
