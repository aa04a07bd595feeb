//! Names, labels, ports and paths that users, the gardenlet and the processes in the pods rely on.

use std::collections::BTreeMap;

pub use api::constants::{
    DRUID_CONTINUES_EPOCH, DRUID_KEEP_VOLUME, DRUID_MIGRATING, DRUID_OPERATION,
    DRUID_SUSPEND_RECONCILE as SUSPEND_ANNOTATION, OPERATION, OWNERSHIP_EPOCH,
    finalizer::ETCD_DRUID as FINALIZER, operation::RECONCILE,
};

/// Name of the process, its field manager and its event source.
pub const DRUID: &str = "etcd-druid";
/// Annotations that request a reconciliation; removed when the reconciliation has begun. Both spellings are
/// in use.
pub const OPERATION_ANNOTATIONS: [&str; 2] = [DRUID_OPERATION, OPERATION];

/// Label: the process that made the object. The controller's watch on pods is restricted to this label.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// Label: the Etcd that the object belongs to.
pub const PART_OF_LABEL: &str = "app.kubernetes.io/part-of";
/// Label: the component of the Etcd that the object belongs to.
pub const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
/// Component of the pods that run etcd.
pub const MEMBER_COMPONENT: &str = "etcd-statefulset";
/// Component of the pods that copy backups.
pub const COPY_COMPONENT: &str = "etcd-copy-backups";

/// Job that copies backups (R17-25).
pub const COPY_JOB: &str = "etcd-copy";
/// Container that runs etcd.
pub const ETCD_CONTAINER: &str = "etcd";
/// Container beside etcd that takes the snapshots; also the only container of the copy Job (R17-25).
pub const BACKUP_CONTAINER: &str = "backup-restore";
/// Init container that checks the data, or restores the data.
pub const INITIALIZE_CONTAINER: &str = "initialize";

/// Port of etcd's clients (TLS).
pub const CLIENT_PORT: i32 = 2379;
/// Port of etcd's peers. A single member listens on loopback only.
pub const PEER_PORT: i32 = 2380;
/// Port of etcd's probes and metrics: plain HTTP with numbers and no secrets, as a probe has no client
/// certificate.
pub const PROBE_PORT: i32 = 2381;
/// Port on loopback on which etcd listens behind the gate; if the port is taken, the next free port is used.
pub const LOOPBACK_PORT: i32 = 2382;
/// Port of backup-restore (TLS).
pub const BACKUP_PORT: i32 = 8080;

/// Where the volume with the data is mounted.
pub const DATA_MOUNT: &str = "/var/etcd/data";
/// etcd's data directory. A folder below the mount, so that a rename can replace the data directory with a
/// restored directory.
pub const DATA_DIR: &str = "/var/etcd/data/new.etcd";
/// The certificate authority of etcd's clients and servers.
pub const CA_MOUNT: &str = "/var/etcd/ssl/ca";
/// etcd's server certificate.
pub const SERVER_MOUNT: &str = "/var/etcd/ssl/server";
/// The certificate with which backup-restore calls etcd.
pub const CLIENT_MOUNT: &str = "/var/etcd/ssl/client";
/// backup-restore's server certificate.
pub const BACKUP_SERVER_MOUNT: &str = "/var/etcdbr/ssl/server";
/// Credentials of the object store.
pub const STORE_MOUNT: &str = "/var/etcd-backup";
/// Credentials of the object store that is copied from.
pub const SOURCE_STORE_MOUNT: &str = "/var/source-etcd-backup";

/// The Service through which clients reach etcd and backup-restore.
#[must_use]
pub fn client_service(etcd: &str) -> String {
    format!("{etcd}-client")
}

/// The headless Service that governs the StatefulSet and reaches a pod that is not ready.
#[must_use]
pub fn peer_service(etcd: &str) -> String {
    format!("{etcd}-peer")
}

/// The host name by which a pod reaches its own etcd. etcd's certificate must contain this name.
#[must_use]
pub fn local_host(etcd: &str) -> String {
    format!("{etcd}-local")
}

/// Labels of every object of an Etcd.
#[must_use]
pub fn labels(etcd: &str, component: &str) -> BTreeMap<String, String> {
    [
        (MANAGED_BY_LABEL, DRUID),
        (PART_OF_LABEL, etcd),
        (COMPONENT_LABEL, component),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect()
}
