//! Volumes of the pods, each with its mount path.

use k8s_openapi::api::core::v1::{SecretVolumeSource, Volume, VolumeMount};

use crate::{
    names::{
        BACKUP_SERVER_MOUNT, CA_MOUNT, CLIENT_MOUNT, DATA_MOUNT, SERVER_MOUNT, SOURCE_STORE_MOUNT,
        STORE_MOUNT,
    },
    wanted::{Backup, ValidatedEtcd},
};

/// Readable by the owner and the pod's group only.
const SECRET_MODE: i32 = 0o440;

const CA: &str = "etcd-ca";
const SERVER: &str = "etcd-server-tls";
const CLIENT: &str = "etcd-client-tls";
const BACKUP_SERVER: &str = "backup-restore-server-tls";
const STORE: &str = "etcd-backup-secret";
const SOURCE_STORE: &str = "source-etcd-backup-secret";

/// The volumes of a member's pod, except the data volume, which comes from the claim template.
#[must_use]
pub fn of_member(wanted: &ValidatedEtcd) -> Vec<Volume> {
    let tls = &wanted.etcd.tls;
    let mut volumes = vec![secret(CA, &tls.ca_secret), secret(SERVER, &tls.server_secret)];
    if let Some(backup) = &wanted.backup {
        volumes.push(secret(CLIENT, &tls.client_secret));
        volumes.push(secret(BACKUP_SERVER, &backup.server_secret));
        volumes.push(secret(STORE, &backup.store.secret));
    }
    volumes
}

/// The volumes of a pod that copies backups.
#[must_use]
pub fn of_copy(backup: &Backup) -> Vec<Volume> {
    let mut volumes = vec![secret(STORE, &backup.store.secret)];
    volumes.extend(
        backup
            .source
            .as_ref()
            .map(|source| secret(SOURCE_STORE, &source.secret)),
    );
    volumes
}

/// The mounts of etcd.
#[must_use]
pub fn mounts_of_etcd(wanted: &ValidatedEtcd) -> Vec<VolumeMount> {
    vec![
        data(wanted),
        read_only(CA, CA_MOUNT),
        read_only(SERVER, SERVER_MOUNT),
    ]
}

/// The mounts of backup-restore beside etcd. Of the data it only needs the leftovers of a restore beside the
/// data directory.
#[must_use]
pub fn mounts_of_server(wanted: &ValidatedEtcd) -> Vec<VolumeMount> {
    let mut mounts = vec![
        data(wanted),
        read_only(STORE, STORE_MOUNT),
        read_only(CA, CA_MOUNT),
        read_only(CLIENT, CLIENT_MOUNT),
        read_only(BACKUP_SERVER, BACKUP_SERVER_MOUNT),
    ];
    if wanted.has_http2_gate() {
        // The gate shows the certificate of etcd.
        mounts.push(read_only(SERVER, SERVER_MOUNT));
    }
    mounts
}

/// The mounts of the init container that checks or restores the data.
#[must_use]
pub fn mounts_of_initialize(wanted: &ValidatedEtcd) -> Vec<VolumeMount> {
    vec![data(wanted), read_only(STORE, STORE_MOUNT)]
}

/// Mounts of the preparation of an etcd without backups: the data alone.
#[must_use]
pub fn mounts_of_prepare(wanted: &ValidatedEtcd) -> Vec<VolumeMount> {
    vec![data(wanted)]
}

/// The mounts of a copy.
#[must_use]
pub fn mounts_of_copy() -> Vec<VolumeMount> {
    vec![
        read_only(STORE, STORE_MOUNT),
        read_only(SOURCE_STORE, SOURCE_STORE_MOUNT),
    ]
}

fn data(wanted: &ValidatedEtcd) -> VolumeMount {
    writable(&wanted.volume.claim, DATA_MOUNT)
}

fn secret(name: &str, secret: &str) -> Volume {
    Volume {
        name: name.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret.to_owned()),
            default_mode: Some(SECRET_MODE),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}

fn read_only(name: &str, path: &str) -> VolumeMount {
    VolumeMount {
        read_only: Some(true),
        ..writable(name, path)
    }
}

fn writable(name: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: name.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    }
}
