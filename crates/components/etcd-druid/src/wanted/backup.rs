//! How an etcd is backed up, checked and completed.

use api::{
    constants::DRUID_REQUIRE_SNAPSHOT,
    druid::{
        BackupSpec, Compression, CompressionPolicy, Etcd, GarbageCollectionPolicy, RequiredSnapshot,
        StoreSpec,
    },
};
use k8s_openapi::api::core::v1::ResourceRequirements;
use kube::ResourceExt;
use runtime::{Result, workload::Variable};

use super::{
    field::{image, wrong},
    owner::{OwnerCheck, owner_check},
    tls::{Tls, backup_server, secret},
};
use crate::{
    bytes,
    flags::{Defaults, GateProtocol, PreparationBounds},
    names::BACKUP_PORT,
    status::past::has_data,
};

/// How an etcd is backed up.
#[derive(Clone, Debug)]
pub struct Backup {
    /// Image of etcd-backup-restore.
    pub image: String,
    /// Port of the HTTP interface.
    pub port: i32,
    /// Secret with the server certificate.
    pub server_secret: String,
    /// The store of the backups.
    pub store: Store,
    /// The owner check, if enabled: the owner of the shoot that etcd requires to serve (R17-13).
    pub owner_check: Option<OwnerCheck>,
    /// How the gate of the owner check forwards.
    pub gate_protocol: GateProtocol,
    /// Bounds of certificates of preparations, where the gate forwards HTTP/2.
    pub preparation_bounds: PreparationBounds,
    /// Whether the etcd must not start empty: an annotation says so, or the etcd has been ready before.
    pub require_snapshot: bool,
    /// The store from which backups are copied first (R17-24).
    pub source: Option<Store>,
    /// The end of the source that the copy must reach.
    pub source_end: Option<SourceEnd>,
    /// How long a copy waits for a final snapshot before the copy continues without it (R17-26).
    pub final_snapshot_wait: String,
    /// When full snapshots are taken.
    pub full_snapshot_schedule: Option<String>,
    /// How often delta snapshots are taken.
    pub delta_snapshot_period: Option<String>,
    /// Bytes of events that make a delta snapshot before its time.
    pub delta_snapshot_memory_limit: Option<u64>,
    /// Time between two garbage collections.
    pub garbage_collection_period: Option<String>,
    /// Retention policy of old snapshots.
    pub garbage_collection_policy: Option<&'static str>,
    /// Number of full snapshots that a counting policy keeps.
    pub max_backups: Option<i32>,
    /// Variables of the environment of the containers.
    pub environment: Vec<Variable>,
    /// Compression of new snapshots.
    pub compression_policy: Option<&'static str>,
    /// Resources of the containers.
    pub resources: Option<ResourceRequirements>,
}

/// The end that the copied backups must reach.
#[derive(Clone, Debug)]
pub struct SourceEnd {
    /// Revision of etcd.
    pub revision: i64,
    /// The final snapshot.
    pub snapshot: Option<RequiredSnapshot>,
    /// Changes up to that revision that may be missing.
    pub accepted_loss: i64,
}

/// A location in an object store.
#[derive(Clone, Debug)]
pub struct Store {
    /// The kind of object store.
    pub provider: String,
    /// The bucket; `None` for the bucket that the Secret names (`bucketName`).
    pub container: Option<String>,
    /// Prefix of all object names.
    pub prefix: String,
    /// The object store's address; `None` for the provider's default.
    pub endpoint: Option<String>,
    /// Secret with credentials.
    pub secret: String,
}

/// Reads `spec.backup`; `None` without a store: the data of such an etcd need not survive (Events).
pub(crate) fn backup(etcd: &Etcd, namespace: &str, defaults: &Defaults, tls: &Tls) -> Result<Option<Backup>> {
    let spec = &etcd.spec.backup;
    let Some(store_spec) = &spec.store else {
        return match (&spec.source_store, &spec.owner_check) {
            (None, None) => Ok(None),
            (Some(_), _) => Err(wrong(
                "spec.backup.store",
                "is missing; sourceStore is copied into it",
            )),
            (None, Some(_)) => Err(wrong(
                "spec.backup.store",
                "is missing; who checks its owner takes a final snapshot when it is lost, so leave ownerCheck out or name a store",
            )),
        };
    };
    if tls.client_secret.is_empty() {
        return Err(wrong(
            "spec.etcd.clientUrlTls.clientTLSSecretRef",
            "is missing; backups are taken with it, as etcd asks each client for a certificate",
        ));
    }
    let store_to = store("spec.backup.store", store_spec, namespace)?;
    let source = spec
        .source_store
        .as_ref()
        .map(|s| store("spec.backup.sourceStore", s, namespace))
        .transpose()?;
    if let Some(from) = &source
        && (&from.container, &from.prefix, &from.endpoint)
            == (&store_to.container, &store_to.prefix, &store_to.endpoint)
        && from.secret == store_to.secret
    {
        return Err(wrong(
            "spec.backup.sourceStore",
            "is the same place as store; leave it out, there is nothing to copy",
        ));
    }
    Ok(Some(Backup {
        image: image(
            "spec.backup.image",
            spec.image.as_ref(),
            &defaults.etcd_backup_restore_image,
        )?,
        port: spec.port.unwrap_or(BACKUP_PORT),
        server_secret: backup_server(spec.tls.as_ref(), tls, namespace)?,
        store: store_to,
        owner_check: owner_check(&etcd.spec)?,
        gate_protocol: defaults.gate_protocol,
        preparation_bounds: defaults.preparation_bounds,
        require_snapshot: require_snapshot(etcd),
        source,
        source_end: spec.required_revision.map(|revision| SourceEnd {
            revision,
            snapshot: spec.required_snapshot.clone(),
            accepted_loss: spec.accepted_loss.unwrap_or_default(),
        }),
        final_snapshot_wait: spec
            .etcd_snapshot_timeout
            .clone()
            .unwrap_or_else(|| defaults.final_snapshot_wait.clone()),
        full_snapshot_schedule: spec.full_snapshot_schedule.clone(),
        delta_snapshot_period: spec.delta_snapshot_period.clone(),
        delta_snapshot_memory_limit: delta_snapshot_memory_limit(spec)?,
        garbage_collection_period: spec.garbage_collection_period.clone(),
        garbage_collection_policy: spec.garbage_collection_policy.map(|policy| match policy {
            GarbageCollectionPolicy::Exponential => "Exponential",
            GarbageCollectionPolicy::LimitBased => "LimitBased",
        }),
        max_backups: spec.max_backups_limit_based_gc,
        environment: defaults.etcd_backup_restore_env.clone(),
        compression_policy: compression(spec.compression.as_ref())?,
        resources: spec.resources.clone(),
    }))
}

/// The bytes of a delta snapshot in memory; `None` leaves the default of the sidecar.
fn delta_snapshot_memory_limit(spec: &BackupSpec) -> Result<Option<u64>> {
    let Some(limit) = &spec.delta_snapshot_memory_limit else {
        return Ok(None);
    };
    let bytes = bytes::parse(limit).ok_or_else(|| {
        wrong(
            "spec.backup.deltaSnapshotMemoryLimit",
            format!("is {:?}; write bytes such as 100Mi", limit.0),
        )
    })?;
    Ok(Some(bytes))
}

/// Whether the etcd must not start empty: the annotation decides, else whether the etcd has served.
fn require_snapshot(etcd: &Etcd) -> bool {
    match etcd.annotations().get(DRUID_REQUIRE_SNAPSHOT).map(String::as_str) {
        Some("true") => true,
        // For users who know that the data are lost, and want the etcd all the same.
        Some("false") => false,
        _ => etcd
            .status
            .as_ref()
            .is_some_and(|status| has_data(&status.conditions)),
    }
}

/// Compression of new snapshots; `None` leaves the choice to etcd-backup-restore. Snapshots of every
/// compression can be read in any case.
fn compression(spec: Option<&Compression>) -> Result<Option<&'static str>> {
    match spec.map(|spec| (spec.enabled, spec.policy)) {
        None => Ok(None),
        Some((Some(false), _)) => Ok(Some("none")),
        Some((_, policy)) => Ok(match policy {
            None => None,
            Some(CompressionPolicy::Gzip) => Some("gzip"),
            Some(CompressionPolicy::Zlib) => Some("zlib"),
            Some(CompressionPolicy::Zstd) => Some("zstd"),
            Some(CompressionPolicy::Lzw) => {
                return Err(wrong(
                    "spec.backup.compression.policy",
                    "is lzw, which is not written any more; choose gzip, zlib or zstd",
                ));
            }
        }),
    }
}

fn store(field: &str, spec: &StoreSpec, namespace: &str) -> Result<Store> {
    let needed = |name: &str, value: Option<&String>, what: &str| match value.map(String::as_str) {
        None | Some("") => Err(wrong(
            &format!("{field}.{name}"),
            format!("is missing; name {what}"),
        )),
        Some(value) => Ok(value.to_owned()),
    };
    let Some(reference) = &spec.secret_ref else {
        return Err(wrong(
            &format!("{field}.secretRef"),
            "is missing; name the Secret with the object store's credentials",
        ));
    };
    Ok(Store {
        provider: needed(
            "provider",
            spec.provider.as_ref(),
            "the kind of object store, such as S3",
        )?,
        container: spec.container.clone().filter(|container| !container.is_empty()),
        prefix: needed(
            "prefix",
            Some(&spec.prefix),
            "where in the bucket the snapshots are",
        )?,
        endpoint: spec.endpoint_override.clone(),
        secret: secret(&format!("{field}.secretRef"), reference, namespace)?,
    })
}
