//! etcd-main, which holds the shoot's objects and is backed up, and etcd-events, which holds the shoot's
//! Events and is not backed up. During a restore, an Etcd with the name etcd-main and a source store stands
//! for the copy of the backups ([`crate::EtcdCopy`]), and is deleted before the real etcd-main is created.

use std::collections::BTreeMap;

use api::{
    constants::{
        DRUID_CONTINUES_EPOCH, DRUID_KEEP_VOLUME, DRUID_REQUIRE_SNAPSHOT, OWNERSHIP_EPOCH, STOPPED_FOR_EPOCH,
    },
    druid::{
        BackupSpec, Compression, CompressionPolicy, Etcd, EtcdConfig, EtcdSpec, GarbageCollectionPolicy,
        OwnerCheckSpec, SecretKeyReference, StoreSpec, TLSConfig,
    },
    gardencore::{Shoot, shoot::ShootStatus},
    meta::{LastOperationType, SecretReference},
};
use futures::future::try_join_all;
use k8s_openapi::{
    api::core::v1::Secret,
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::LabelSelector},
};
use kube::{Api, ResourceExt};
use runtime::{
    Error, Result,
    client::{Cluster, apply, wait},
    error::Explain,
};

use crate::{
    FIELD_MANAGER, Facts, Operation, OwnerRecord, Residency, configuration_problem,
    etcd::{
        epoch_start_report, owner,
        ready::{look_migrating, look_ready},
    },
    ownership::owner_record,
    secrets::config::{BACKUP_SECRET, CA_ETCD, ETCD_CLIENT, ETCD_SERVER},
    task::{BUCKET, ExternalSystems, NONE, PartTask},
    verbs::{Deploy, Destroy, Sleep, Tasks},
};

/// The etcd with the shoot's objects.
pub(crate) const MAIN: &str = "etcd-main";
/// The etcd with the shoot's Events.
pub(crate) const EVENTS: &str = "etcd-events";

/// Upper bound of the data loss if the seed dies.
const DELTA_SNAPSHOT_PERIOD: &str = "5m";
/// Longer than the delta period, as the schema asks.
const GARBAGE_COLLECTION_PERIOD: &str = "12h";

/// Both etcds of the shoot.
#[derive(Debug)]
pub struct Etcds;

impl Deploy for Etcds {
    const TASKS: Tasks = [
        "Deploying main and events etcd",
        "Waiting until main and event etcd report readiness",
    ];
    const TOUCHES: ExternalSystems = BUCKET;

    /// On a destination seed, etcd-main starts empty, and etcd-backup-restore restores the data from the
    /// bucket before etcd runs.
    async fn deploy(f: &Facts) -> Result<()> {
        Box::pin(write(f, 1)).await
    }

    /// The error that etcd-druid reports is the error of the step.
    async fn ready(f: &Facts) -> Result<()> {
        let limits = f.residency.settings.timeouts.etcd;
        let moves = f.operation == Operation::Migrate;
        let look = if moves { look_migrating } else { look_ready };
        let mut awaited = vec![EVENTS];
        if !(moves && owner_record_was_deleted(f).await?) {
            awaited.push(MAIN);
        }
        let waits = awaited
            .into_iter()
            .map(|name| f.residency.wait_until_etcd(name, limits, look));
        try_join_all(waits).await?;
        if f.operation == Operation::Restore {
            let found = f.residency.etcds().get_opt(MAIN).await;
            let found = found.context("could not read Etcd etcd-main")?;
            Box::pin(epoch_start_report::record_loss(f, found.as_ref())).await?;
        }
        Ok(())
    }
}

/// Whether an earlier run of the move has deleted the owner record, so that etcd-main refuses clients now or
/// soon (R17-53). A later step awaits the report of the final snapshot.
async fn owner_record_was_deleted(f: &Facts) -> Result<bool> {
    if !f.seed_object.spec.checks_owners() || owner_record::exists(&f.residency).await? {
        return Ok(false);
    }
    let found = f.residency.etcds().get_opt(MAIN).await;
    let found = found.context("could not read Etcd etcd-main")?;
    Ok(found.is_some_and(|found| found.spec.backup.owner_check.is_some()))
}

/// The volumes stay.
impl Sleep for Etcds {
    const TASKS: Tasks = [
        "Scaling main and events etcd down",
        "Waiting until main and event etcd have stopped",
    ];
    const TOUCHES: ExternalSystems = BUCKET;

    async fn sleep(f: &Facts) -> Result<()> {
        Box::pin(write(f, 0)).await
    }

    async fn asleep(f: &Facts) -> Result<()> {
        Self::ready(f).await
    }
}

async fn write(f: &Facts, replicas: i32) -> Result<()> {
    let store = if f.has_backup() {
        Some(f.store(BACKUP_SECRET).await?)
    } else {
        None
    };
    let api = f.residency.etcds();
    let found = api.get_opt(MAIN).await.context("could not read Etcd etcd-main")?;
    if found
        .as_ref()
        .is_some_and(|found| found.spec.backup.source_store.is_some())
    {
        return Err(Error::transient(
            "the Etcd that copies backups is still there: etcd starts when it is gone",
        ));
    }
    if f.operation.deploys() {
        owner::check_not_sealed(f.epoch(), found.as_ref())?;
    }
    let mut main = f.etcd(MAIN, store);
    if let Some(epoch) = continued_epoch(&f.shoot, &f.seed_object.name_any()) {
        main.annotations_mut()
            .insert(DRUID_CONTINUES_EPOCH.into(), epoch.to_string());
    }
    if main.spec.backup.store.is_some() {
        main.spec.backup.owner_check = Box::pin(owner_check(f, found.as_ref())).await?;
        if has_past(f.operation, &f.shoot, found.as_ref()) {
            main.annotations_mut()
                .insert(DRUID_REQUIRE_SNAPSHOT.into(), "true".into());
        }
    }
    for mut etcd in [main, f.etcd(EVENTS, None)] {
        etcd.spec.replicas = replicas;
        FIELD_MANAGER.apply(&api, &etcd).await?;
    }
    // The annotation belongs to the epoch before, and comes from a patch, so that the apply does not remove
    // the annotation. The removal comes after the apply, which has written the present epoch: a gardenlet
    // that ends in between leaves an annotation without effect.
    if found.is_some_and(|found| found.annotations().contains_key(STOPPED_FOR_EPOCH)) {
        f.residency.mark_etcd(STOPPED_FOR_EPOCH, None).await?;
    }
    Ok(())
}

/// The owner check of etcd-main. A move that creates a missing Etcd sets the check while the owner record
/// stands: kube-apiserver may still write, and a takeover has to stop these writes.
async fn owner_check(f: &Facts, found: Option<&Etcd>) -> Result<Option<OwnerCheckSpec>> {
    let is_missing_in_move = f.operation == Operation::Migrate && found.is_none();
    if is_missing_in_move && OwnerRecord::claim(f).await?.is_some() {
        return owner::specified_check(f);
    }
    owner::check(f, found)
}

impl Destroy for Etcds {
    const TASKS: Tasks = [
        "Destroying main and events etcd",
        "Waiting until main and event etcd have been destroyed",
    ];
    const TOUCHES: ExternalSystems = BUCKET;

    async fn destroy(residency: &Residency) -> Result<()> {
        residency.destroy_etcd(MAIN).await?;
        residency.destroy_etcd(EVENTS).await
    }

    async fn gone(residency: &Residency) -> Result<()> {
        let timeout = residency.settings.timeouts.etcd.timeout;
        let api = residency.etcds();
        try_join_all([MAIN, EVENTS].map(|name| wait::until_gone(&api, name, timeout)))
            .await
            .map(|_| ())
    }
}

impl Etcds {
    /// [`Self::deploy_events`], as a task.
    pub const DEPLOY_EVENTS: PartTask<Facts> =
        PartTask::new("Deploying events etcd while backups are copied", NONE, |input| {
            Box::pin(Self::deploy_events(input))
        });
    /// [`Self::destroy_but_keep_volume`], as a task.
    pub const DESTROY_BUT_KEEP_VOLUME: PartTask<Residency> =
        PartTask::new("Destroying etcd and keeping its data", BUCKET, |input| {
            Box::pin(Self::destroy_but_keep_volume(input))
        });

    /// "Deploying events etcd while backups are copied": etcd-events needs no data from the former seed.
    pub async fn deploy_events(f: &Facts) -> Result<()> {
        let api = f.residency.etcds();
        FIELD_MANAGER.apply(&api, &f.etcd(EVENTS, None)).await?;
        Ok(())
    }

    /// Whether etcd-main has replicas, and is not a copy of backups.
    pub async fn are_awake(residency: &Residency) -> Result<bool> {
        let found = residency.etcds().get_opt(MAIN).await;
        let found = found.context("could not read Etcd etcd-main")?;
        Ok(found.is_some_and(|found| found.spec.replicas > 0 && found.spec.backup.source_store.is_none()))
    }

    /// "Destroying etcd and keeping its data": the volume of etcd-main stays until the destination has
    /// recorded a restore. An etcd starts on the volume only if the shoot comes back before that.
    pub async fn destroy_but_keep_volume(residency: &Residency) -> Result<()> {
        residency.mark_etcd(DRUID_KEEP_VOLUME, Some("true")).await?;
        Self::destroy(residency).await
    }
}

impl Facts {
    /// The shoot's present epoch.
    pub(crate) fn epoch(&self) -> i64 {
        self.shoot.status.as_ref().map_or(1, ShootStatus::epoch)
    }

    /// A store in a bucket, from the Secret that a BackupEntry put into the shoot's namespace.
    pub(crate) async fn store(&self, secret_name: &str) -> Result<StoreSpec> {
        let api: Api<Secret> = self.residency.seed.namespaced(&self.residency.namespace);
        let secret = api
            .get_opt(secret_name)
            .await
            .context(format_args!("could not read Secret {secret_name}"))?
            .ok_or_else(|| {
                Error::transient(format!(
                    "Secret {secret_name} is not there yet: its BackupEntry makes it"
                ))
            })?;
        let bucket = secret.data.as_ref().and_then(|data| data.get("bucketName"));
        let bucket = bucket.and_then(|bytes| String::from_utf8(bytes.0.clone()).ok()).ok_or_else(|| {
            configuration_problem(format!(
                "Secret {secret_name} in namespace {} names no bucket (bucketName): reconcile the shoot's BackupEntry",
                self.residency.namespace
            ))
        })?;
        Ok(StoreSpec {
            container: Some(bucket),
            prefix: format!("{}/{MAIN}", self.backup_entry_name()),
            provider: Some("S3".into()),
            secret_ref: Some(SecretReference::new(&self.residency.namespace, secret_name)),
            ..StoreSpec::default()
        })
    }

    /// An Etcd of the shoot, with or without backups.
    pub(crate) fn etcd(&self, name: &str, store: Option<StoreSpec>) -> Etcd {
        let labels = [
            ("app", "etcd"),
            ("instance", name),
            ("gardener.cloud/role", "controlplane"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let backed_up = store.is_some();
        let mut etcd = Etcd::new(
            name,
            EtcdSpec {
                selector: Some(LabelSelector {
                    match_labels: Some(labels[..2].iter().cloned().collect()),
                    ..LabelSelector::default()
                }),
                labels: labels.into(),
                replicas: 1,
                etcd: EtcdConfig {
                    client_port: Some(2379),
                    server_port: Some(2380),
                    client_url_tls: Some(self.residency.etcd_tls()),
                    ..EtcdConfig::default()
                },
                backup: BackupSpec {
                    port: Some(8080),
                    tls: Some(self.residency.etcd_tls()),
                    store,
                    full_snapshot_schedule: backed_up
                        .then(|| full_snapshot_schedule(&self.residency.namespace)),
                    delta_snapshot_period: backed_up.then(|| DELTA_SNAPSHOT_PERIOD.into()),
                    garbage_collection_period: backed_up.then(|| GARBAGE_COLLECTION_PERIOD.into()),
                    garbage_collection_policy: backed_up.then_some(GarbageCollectionPolicy::Exponential),
                    compression: backed_up.then_some(Compression {
                        enabled: Some(true),
                        policy: Some(CompressionPolicy::Gzip),
                    }),
                    ..BackupSpec::default()
                },
                storage_capacity: Some(Quantity(self.residency.settings.etcd_storage.clone())),
                ..EtcdSpec::default()
            },
        );
        etcd.metadata.namespace = Some(self.residency.namespace.clone());
        etcd.metadata.annotations = epoch_annotation(self.epoch());
        etcd
    }
}

impl Residency {
    fn etcd_tls(&self) -> TLSConfig {
        let secret = |name: &str| SecretReference::new(&self.namespace, name);
        TLSConfig {
            tls_ca_secret_ref: SecretKeyReference {
                name: Some(CA_ETCD.into()),
                namespace: Some(self.namespace.clone()),
                data_key: Some("ca.crt".into()),
            },
            server_tls_secret_ref: secret(ETCD_SERVER),
            client_tls_secret_ref: Some(secret(ETCD_CLIENT)),
        }
    }

    /// Sets an annotation of etcd-main, if etcd-main exists.
    pub(crate) async fn mark_etcd(&self, key: &str, value: Option<&str>) -> Result<()> {
        let api = self.etcds();
        let found = api.get_opt(MAIN).await.context("could not read Etcd etcd-main")?;
        let Some(found) = found.filter(|found| found.annotations().get(key).map(String::as_str) != value)
        else {
            return Ok(());
        };
        FIELD_MANAGER
            .annotate(&api, &found.name_any(), key, value)
            .await
            .map(|_| ())
    }

    pub(crate) async fn destroy_etcd(&self, name: &str) -> Result<()> {
        let api = self.etcds();
        let found = api
            .get_opt(name)
            .await
            .context(format_args!("could not read Etcd {name}"))?;
        if found.is_none() {
            return Ok(());
        }
        FIELD_MANAGER
            .annotate(&api, name, api::constants::CONFIRMATION_DELETION, Some("true"))
            .await?;
        apply::delete(&api, name).await
    }

    pub(crate) fn etcds(&self) -> Api<Etcd> {
        self.seed.namespaced(&self.namespace)
    }
}

/// Epoch 1 has no annotation: the object may be older than epochs.
pub(crate) fn epoch_annotation(epoch: i64) -> Option<BTreeMap<String, String>> {
    (epoch > 1).then(|| [(OWNERSHIP_EPOCH.to_owned(), epoch.to_string())].into())
}

/// The earlier epoch that the present epoch continues with the same data in this seed. Also after phase
/// `Held`, because a flow may have recorded that phase before etcd has started on the volume.
fn continued_epoch(shoot: &Shoot, seed: &str) -> Option<i64> {
    let source = placement::ownership_status::ownership(shoot).ok()?.source?;
    (source.seed == seed && source.epoch < shoot.status.as_ref()?.epoch()).then_some(source.epoch)
}

/// Whether etcd had data before, so that an empty start would lose the data: the shoot is restored, or the
/// Etcd was lost. A restore always requires a snapshot. Otherwise an existing Etcd keeps the annotation,
/// and the annotation takes effect at the next start of etcd.
///
/// A move without an Etcd requires a snapshot, too: the Etcd was deleted by hand. The operation itself is the
/// evidence, because a shoot is moved only after the creation has succeeded ([`placement::wanted`]). A shoot
/// in deletion may never have been complete, and must not be blocked.
///
/// The former host wrote `status.lastOperation` of a shoot with an earlier epoch, so that field alone is no
/// proof of a new shoot.
fn has_past(operation: Operation, shoot: &Shoot, found: Option<&Etcd>) -> bool {
    let last = shoot
        .status
        .as_ref()
        .and_then(|status| status.last_operation.as_ref());
    let was_created = placement::has_earlier_epoch(shoot)
        || last.is_some_and(|last| last.type_ != LastOperationType::Create);
    match (operation, found) {
        (Operation::Restore, _) | (Operation::Migrate, None) => true,
        (_, Some(found)) => found
            .annotations()
            .get(DRUID_REQUIRE_SNAPSHOT)
            .is_some_and(|value| value == "true"),
        (Operation::Create | Operation::Reconcile, None) => was_created,
        (Operation::Delete | Operation::ForceDelete, None) => false,
    }
}

/// Daily, at a minute derived from the namespace, so that the etcds of a seed do not all run at the same
/// time.
fn full_snapshot_schedule(namespace: &str) -> String {
    let number = namespace
        .bytes()
        .fold(0u32, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{} {} * * *", number % 60, (number / 60) % 24)
}

#[cfg(test)]
#[path = "etcds_tests.rs"]
mod tests;
