//! The containers of etcd-backup-restore: before etcd, beside etcd, and alone in a copy Job.

use k8s_openapi::{
    api::core::v1::{Container, HTTPGetAction, Probe, ResourceRequirements},
    apimachinery::pkg::util::intstr::IntOrString,
};

use super::{etcd::port, requests, security, volumes};
use crate::{
    names::{
        BACKUP_CONTAINER, BACKUP_SERVER_MOUNT, CA_MOUNT, CLIENT_MOUNT, DATA_DIR, INITIALIZE_CONTAINER,
        SERVER_MOUNT, SOURCE_STORE_MOUNT, STORE_MOUNT, local_host,
    },
    wanted::{Backup, OwnerCheck, SourceEnd, Store, ValidatedEtcd},
};

/// The binary in its image.
const BINARY: &str = "/etcd-backup-restore";
/// A flag that may differ between a pod and its template without a restart (see [`crate::rollout`]). Such a
/// flag takes effect at the next start of the pod.
pub const REQUIRE_SNAPSHOT: &str = "--require-snapshot";
/// Also without a restart: the largest database size after a restore.
pub const QUOTA: &str = "--embedded-etcd-quota-bytes";
/// Also without a restart: the data directory beside which the replaced data directory is removed.
pub const REPLACED_BESIDE: &str = "--data-dir";
/// The ownership epoch of the data.
pub const EPOCH: &str = "--ownership-epoch";
/// The command before an etcd without backups.
pub const PREPARE: &str = "prepare";
/// The Etcd with the Events of a shoot, by the name that the gardenlet uses: Events may be lost. The Etcd
/// with the objects has no backups either in a seed without a bucket, and these data must never be removed.
const EVENTS: &str = "etcd-events";
/// The data of the etcd may be removed if the data cannot be continued.
const DISPOSABLE_DATA: &str = "--disposable-data";
/// Clients reach the etcd that follows only through the gate. So etcd may start although its epoch was
/// sealed, for the final snapshot.
const BEHIND_GATE: &str = "--behind-gate";
/// Seconds between two readiness probes. Together with [`READINESS_FAILURES`] the time in which clients are
/// still sent to an etcd that has lost the shoot (R17-40). The smallest period that Kubernetes allows.
const READINESS_PERIOD: i32 = 1;
/// Failed probes before the pod is not ready. The answer comes from memory, so the second probe only guards
/// against a lost packet.
const READINESS_FAILURES: i32 = 2;

/// Checks the data directory, and restores a missing or broken directory from the backup; etcd starts only
/// afterwards.
#[must_use]
pub fn initialize(wanted: &ValidatedEtcd, backup: &Backup) -> Container {
    let mut args = vec!["initialize".to_owned()];
    args.push(format!("--data-dir={DATA_DIR}"));
    args.extend(store_args("", &backup.store, STORE_MOUNT));
    args.extend(member_args(wanted));
    args.push(format!("{QUOTA}={}", wanted.etcd.quota_bytes));
    if backup.owner_check.is_some() {
        args.push(BEHIND_GATE.to_owned());
    }
    if backup.require_snapshot {
        args.push(REQUIRE_SNAPSHOT.to_owned());
    }
    Container {
        name: INITIALIZE_CONTAINER.to_owned(),
        volume_mounts: Some(volumes::mounts_of_initialize(wanted)),
        ..container(backup, args)
    }
}

/// Gives an etcd without backups revisions above all former revisions, so that clients of kube-apiserver that
/// watch Events across a move list again.
#[must_use]
pub fn prepare(wanted: &ValidatedEtcd) -> Container {
    let mut args = vec![PREPARE.to_owned(), format!("--data-dir={DATA_DIR}")];
    args.extend(member_args(wanted));
    args.push(format!("{QUOTA}={}", wanted.etcd.quota_bytes));
    if wanted.name == EVENTS {
        args.push(DISPOSABLE_DATA.to_owned());
    }
    Container {
        name: INITIALIZE_CONTAINER.to_owned(),
        volume_mounts: Some(volumes::mounts_of_prepare(wanted)),
        ..plain_container(&wanted.backup_restore_image, args)
    }
}

/// The flags of the member of the data directory, and of the epoch of its data.
fn member_args(wanted: &ValidatedEtcd) -> Vec<String> {
    let (member, peer) = (wanted.member_name(), wanted.peer_url());
    let mut args = vec![
        format!("--name={member}"),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster={member}={peer}"),
        format!("--initial-cluster-token={}", wanted.uid),
    ];
    args.extend(epoch(wanted));
    args
}

/// Takes snapshots while etcd runs, and answers snapshot requests.
#[must_use]
pub fn server(wanted: &ValidatedEtcd, backup: &Backup) -> Container {
    let mut args = vec!["server".to_owned()];
    args.extend(store_args("", &backup.store, STORE_MOUNT));
    args.push(format!(
        "--endpoints=https://{}:{}",
        local_host(&wanted.name),
        wanted.etcd_port()
    ));
    args.push(format!("--cacert={CA_MOUNT}/{}", wanted.etcd.tls.ca_key));
    args.push(format!("--cert={CLIENT_MOUNT}/tls.crt"));
    args.push(format!("--key={CLIENT_MOUNT}/tls.key"));
    args.push(format!("--listen-address=0.0.0.0:{}", backup.port));
    args.push(format!("--server-cert={BACKUP_SERVER_MOUNT}/tls.crt"));
    args.push(format!("--server-key={BACKUP_SERVER_MOUNT}/tls.key"));
    args.push(format!("{REPLACED_BESIDE}={DATA_DIR}"));
    args.extend(epoch(wanted));
    args.extend(
        wanted
            .gate()
            .map(|check| owner_args(wanted, check))
            .unwrap_or_default(),
    );
    let mut option =
        |flag: &str, value: Option<String>| args.extend(value.map(|value| format!("--{flag}={value}")));
    option("schedule", backup.full_snapshot_schedule.clone());
    option("delta-snapshot-period", backup.delta_snapshot_period.clone());
    option(
        "delta-snapshot-memory-limit",
        backup.delta_snapshot_memory_limit.map(|bytes| bytes.to_string()),
    );
    option(
        "garbage-collection-period",
        backup.garbage_collection_period.clone(),
    );
    option(
        "garbage-collection-policy",
        backup.garbage_collection_policy.map(str::to_owned),
    );
    option("max-backups", backup.max_backups.map(|number| number.to_string()));
    option("compression-policy", backup.compression_policy.map(str::to_owned));
    let mut ports = vec![port("backuprestore", backup.port)];
    if wanted.gate().is_some() {
        ports.push(port("client", wanted.etcd.client_port));
    }
    ports.extend(wanted.events_gate().map(|gate| port("events", gate.pod_port)));
    Container {
        name: BACKUP_CONTAINER.to_owned(),
        ports: Some(ports),
        readiness_probe: Some(readiness(backup)),
        volume_mounts: Some(volumes::mounts_of_server(wanted)),
        resources: Some(resources_of_server(backup)),
        ..container(backup, args)
    }
}

/// The flags of the owner check, and of the gate that is open while the check succeeds (R17-13, R17-40).
fn owner_args(wanted: &ValidatedEtcd, check: &OwnerCheck) -> Vec<String> {
    let mut args = vec![
        format!("--owner-name={}", check.name),
        format!("--owner-id={}", check.id),
        format!("--owner-zone={}", check.zone),
    ];
    if !check.authorities.is_empty() {
        let servers: Vec<_> = check.authorities.iter().map(ToString::to_string).collect();
        args.push(format!("--owner-authorities={}", servers.join(",")));
    }
    args.push(format!("--shoot-uid={}", check.shoot_uid));
    args.push(format!(
        "--gate-listen-address=0.0.0.0:{}",
        wanted.etcd.client_port
    ));
    args.push(format!("--gate-target=127.0.0.1:{}", check.etcd_port));
    if wanted.has_http2_gate() {
        args.push("--gate-protocol=HTTP2".to_owned());
        args.push(format!("--gate-cert={SERVER_MOUNT}/tls.crt"));
        args.push(format!("--gate-key={SERVER_MOUNT}/tls.key"));
        args.push(format!("--gate-client-ca={CA_MOUNT}/{}", wanted.etcd.tls.ca_key));
        let bounds = wanted.backup.as_ref().map(|backup| backup.preparation_bounds);
        args.extend(bounds.unwrap_or_default().args());
    }
    if let Some(gate) = &check.events_gate {
        args.push(format!("--gate-events-listen-address=0.0.0.0:{}", gate.pod_port));
        args.push(format!("--gate-events-target={}", gate.target));
    }
    args.extend(
        check
            .options
            .iter()
            .map(|(flag, value)| format!("--{flag}={value}")),
    );
    args
}

/// Copies the newest backup from a source store to a target store (R17-25 to R17-27).
#[must_use]
pub fn copy(wanted: &ValidatedEtcd, backup: &Backup) -> Container {
    let mut args = vec!["copy".to_owned()];
    args.extend(store_args("", &backup.store, STORE_MOUNT));
    if let Some(source) = &backup.source {
        args.extend(store_args("source-", source, SOURCE_STORE_MOUNT));
    }
    args.extend(epoch(wanted));
    args.push("--wait-for-final-snapshot=true".to_owned());
    args.push(format!(
        "--wait-for-final-snapshot-timeout={}",
        backup.final_snapshot_wait
    ));
    args.extend(backup.source_end.iter().flat_map(end_args));
    args.push(format!("--listen-address=0.0.0.0:{}", backup.port));
    Container {
        name: BACKUP_CONTAINER.to_owned(),
        ports: Some(vec![port("progress", backup.port)]),
        volume_mounts: Some(volumes::mounts_of_copy()),
        ..container(backup, args)
    }
}

/// The flags for the end that the copy must reach.
fn end_args(end: &SourceEnd) -> Vec<String> {
    let mut args = vec![format!("--required-revision={}", end.revision)];
    if let Some(snapshot) = &end.snapshot {
        args.push(format!("--required-snapshot={}", snapshot.name));
        args.push(format!("--required-snapshot-sha256={}", snapshot.sha256));
    }
    if end.accepted_loss > 0 {
        args.push(format!("--accepted-loss={}", end.accepted_loss));
    }
    args
}

fn container(backup: &Backup, args: Vec<String>) -> Container {
    Container {
        env: (!backup.environment.is_empty()).then(|| backup.environment.iter().map(Into::into).collect()),
        resources: Some(backup.resources.clone().unwrap_or_else(default_resources)),
        ..plain_container(&backup.image, args)
    }
}

fn plain_container(image: &str, args: Vec<String>) -> Container {
    Container {
        image: Some(image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        command: Some(vec![BINARY.to_owned()]),
        args: Some(args),
        resources: Some(default_resources()),
        security_context: Some(security::container()),
        // On failure the container writes a sentence, and etcd-druid copies this sentence to
        // `status.lastErrors`.
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..Container::default()
    }
}

/// The flag of the epoch; `None` for the first epoch, so that the etcd of a shoot that never moved does not
/// restart when the epoch becomes known.
fn epoch(wanted: &ValidatedEtcd) -> Option<String> {
    (wanted.epoch > 1).then(|| format!("{EPOCH}={}", wanted.epoch))
}

/// The default requests of a container of etcd-backup-restore: its memory does not grow with the data.
#[must_use]
pub fn default_resources() -> ResourceRequirements {
    requests("10m", "48Mi")
}

/// Every byte of etcd's clients passes the gate, so this container needs CPU time as soon as etcd does.
fn resources_of_server(backup: &Backup) -> ResourceRequirements {
    let default = || match backup.owner_check {
        Some(_) => requests("50m", "64Mi"),
        None => default_resources(),
    };
    backup.resources.clone().unwrap_or_else(default)
}

fn store_args(prefix: &str, store: &Store, credentials: &str) -> Vec<String> {
    let mut args = vec![
        format!("--{prefix}storage-provider={}", store.provider),
        format!("--{prefix}store-prefix={}", store.prefix),
        format!("--{prefix}store-credentials-dir={credentials}"),
    ];
    args.extend(
        store
            .container
            .as_ref()
            .map(|container| format!("--{prefix}store-container={container}")),
    );
    args.extend(
        store
            .endpoint
            .as_ref()
            .map(|url| format!("--{prefix}store-endpoint-override={url}")),
    );
    args
}

/// Ready means that clients may use this etcd. Kubernetes removes the pod, and so etcd, from its Service when
/// the probe fails.
fn readiness(backup: &Backup) -> Probe {
    // Without an owner check both paths answer the same, and a change of the path would restart every etcd.
    let path = if backup.owner_check.is_some() {
        "/readyz"
    } else {
        "/healthz"
    };
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::Int(backup.port),
            scheme: Some("HTTPS".to_owned()),
            ..HTTPGetAction::default()
        }),
        initial_delay_seconds: Some(0),
        period_seconds: Some(READINESS_PERIOD),
        timeout_seconds: Some(2),
        failure_threshold: Some(READINESS_FAILURES),
        success_threshold: Some(1),
        ..Probe::default()
    }
}
