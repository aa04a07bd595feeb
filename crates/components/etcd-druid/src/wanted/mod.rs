//! A validated Etcd with all defaults filled in, so that the builders never see an incomplete specification.

mod backup;
mod field;
mod owner;
mod tls;

use std::collections::BTreeMap;

use api::druid::{
    CompactionMode, Etcd, EtcdConfig, FreelistType, MetricsLevel, SharedConfig, TrafficDistribution,
};
use k8s_openapi::{
    api::core::v1::{Affinity, ResourceRequirements, TopologySpreadConstraint},
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::OwnerReference},
};
use kube::{Resource, ResourceExt};
use runtime::{Error, Result};

use crate::{
    bytes,
    flags::{Defaults, GateProtocol},
    names::{CLIENT_PORT, DRUID_CONTINUES_EPOCH, OWNERSHIP_EPOCH, PEER_PORT},
};

use self::field::image;
pub use self::{
    backup::{Backup, SourceEnd, Store},
    owner::{EventsGate, OwnerCheck},
    tls::Tls,
};
pub(crate) use self::{
    field::wrong,
    owner::{lasts_beyond, lasts_beyond_a_fence, outlasts_a_fence},
};

/// Default of the largest database size, as upstream: the most that etcd recommends.
const QUOTA_BYTES: u64 = 8 << 30;
/// Default capacity of the volume: a database of the largest size, a restore beside the database, and the
/// write-ahead log.
const CAPACITY: &str = "16Gi";
/// Default retention of history. Long enough for a client that reconnects to continue its watch.
const COMPACTION_RETENTION: &str = "30m";

/// A validated Etcd.
#[derive(Clone, Debug)]
pub struct ValidatedEtcd {
    /// Name of the Etcd.
    pub name: String,
    /// Namespace of the Etcd.
    pub namespace: String,
    /// Unique id; distinguishes an etcd cluster from a later cluster of the same name.
    pub uid: String,
    /// The owner reference through which objects are deleted together with the Etcd.
    pub owner: OwnerReference,
    /// The ownership epoch of the data.
    pub epoch: i64,
    /// The earlier ownership epoch that the Etcd continues with the same data, if any.
    pub continues: Option<i64>,
    /// Members: 0 (stopped) or 1.
    pub replicas: i32,
    /// Whether everything runs as root.
    pub run_as_root: bool,
    /// Labels of pods.
    pub pod_labels: BTreeMap<String, String>,
    /// Annotations of pods.
    pub pod_annotations: BTreeMap<String, String>,
    /// Labels of the client Service.
    pub client_service_labels: BTreeMap<String, String>,
    /// Annotations of the client Service.
    pub client_service_annotations: BTreeMap<String, String>,
    /// Traffic distribution of the client Service.
    pub traffic_distribution: Option<&'static str>,
    /// Priority of pods.
    pub priority_class: Option<String>,
    /// Affinity of the pods.
    pub affinity: Option<Affinity>,
    /// How pods spread.
    pub topology_spread_constraints: Option<Vec<TopologySpreadConstraint>>,
    /// How etcd runs.
    pub etcd: Member,
    /// The backup settings, if backups are enabled.
    pub backup: Option<Backup>,
    /// Image of etcd-backup-restore, which an etcd without backups needs before its start too.
    pub backup_restore_image: String,
    /// The volume of the data.
    pub volume: DataVolume,
}

/// How etcd runs.
#[derive(Clone, Debug)]
pub struct Member {
    /// Image.
    pub image: String,
    /// Port for clients.
    pub client_port: i32,
    /// Port for peers.
    pub peer_port: i32,
    /// Certificates.
    pub tls: Tls,
    /// Largest size of the database.
    pub quota_bytes: u64,
    /// `basic` or `extensive`.
    pub metrics: &'static str,
    /// Whether etcd speaks JSON too.
    pub grpc_gateway: bool,
    /// Entries after which etcd writes its own snapshot.
    pub snapshot_count: Option<i64>,
    /// `periodic` or `revision`.
    pub auto_compaction_mode: &'static str,
    /// Retention of history; the unit follows the mode.
    pub auto_compaction_retention: String,
    /// Type of the database's list of free pages.
    pub freelist_type: Option<&'static str>,
    /// Resources of the container.
    pub resources: Option<ResourceRequirements>,
}

/// The volume with the data.
#[derive(Clone, Debug)]
pub struct DataVolume {
    /// Name of the claim template.
    pub claim: String,
    /// Class, if not the default.
    pub storage_class: Option<String>,
    /// Size.
    pub capacity: Quantity,
}

impl ValidatedEtcd {
    /// Reads and validates a specification. An error names the invalid field (`ERR_CONFIGURATION_PROBLEM`).
    pub fn new(etcd: &Etcd, defaults: &Defaults) -> Result<Self> {
        let (name, namespace) = (etcd.name_any(), etcd.namespace().unwrap_or_default());
        let spec = &etcd.spec;
        if !(0..=1).contains(&spec.replicas) {
            return Err(wrong(
                "spec.replicas",
                format!(
                    "is {}; clusters of one member are supported, so set 1, or 0 to stop it",
                    spec.replicas
                ),
            ));
        }
        let certificates = tls::tls(&spec.etcd, &namespace)?;
        let backup = backup::backup(etcd, &namespace, defaults, &certificates)?;
        let constraints = spec.scheduling_constraints.clone().unwrap_or_default();
        let service = spec.etcd.client_service.clone().unwrap_or_default();
        Ok(Self {
            uid: etcd.uid().unwrap_or_default(),
            owner: etcd
                .controller_owner_ref(&())
                .ok_or_else(|| Error::bug("an Etcd was read that has no name or uid"))?,
            epoch: epoch(etcd)?,
            continues: continued_epoch(etcd)?,
            replicas: spec.replicas,
            run_as_root: spec.run_as_root.unwrap_or(false),
            pod_labels: spec.labels.clone(),
            pod_annotations: spec.annotations.clone(),
            client_service_labels: service.labels,
            client_service_annotations: service.annotations,
            traffic_distribution: service
                .traffic_distribution
                .map(|distribution| match distribution {
                    TrafficDistribution::PreferSameZone => "PreferSameZone",
                    TrafficDistribution::PreferSameNode => "PreferSameNode",
                    TrafficDistribution::PreferClose => "PreferClose",
                }),
            priority_class: spec.priority_class_name.clone(),
            affinity: constraints.affinity,
            topology_spread_constraints: Some(constraints.topology_spread_constraints)
                .filter(|c| !c.is_empty()),
            etcd: member(&spec.etcd, spec.shared_config.as_ref(), certificates, defaults)?,
            backup,
            backup_restore_image: image(
                "spec.backup.image",
                spec.backup.image.as_ref(),
                &defaults.etcd_backup_restore_image,
            )?,
            volume: DataVolume {
                claim: spec.volume_claim_template.clone().unwrap_or_else(|| name.clone()),
                storage_class: spec.storage_class.clone().filter(|class| !class.is_empty()),
                capacity: spec
                    .storage_capacity
                    .clone()
                    .unwrap_or_else(|| Quantity(CAPACITY.to_owned())),
            },
            name,
            namespace,
        })
    }

    /// The name of the only member: the name of the pod that the StatefulSet creates.
    #[must_use]
    pub fn member_name(&self) -> String {
        format!("{}-0", self.name)
    }

    /// The name of the only member's volume claim, as the StatefulSet builds the name.
    #[must_use]
    pub fn claim_name(&self) -> String {
        format!("{}-{}", self.volume.claim, self.member_name())
    }

    /// The port on which etcd itself listens: the client port, or a port on loopback if the gate listens on
    /// the client port.
    #[must_use]
    pub fn etcd_port(&self) -> i32 {
        self.gate().map_or(self.etcd.client_port, |check| check.etcd_port)
    }

    /// The peer URL of the only member.
    #[must_use]
    pub fn peer_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd.peer_port)
    }

    /// The owner check, if clients reach etcd only through the gate, which is open while this seed owns the
    /// shoot (R17-40).
    #[must_use]
    pub fn gate(&self) -> Option<&OwnerCheck> {
        self.backup.as_ref()?.owner_check.as_ref()
    }

    /// Whether the gate ends the TLS of clients.
    #[must_use]
    pub fn has_http2_gate(&self) -> bool {
        let forwards_http2 = |backup: &Backup| backup.gate_protocol == GateProtocol::Http2;
        self.gate().is_some() && self.backup.as_ref().is_some_and(forwards_http2)
    }

    /// The gate for clients of the etcd with the Events.
    #[must_use]
    pub fn events_gate(&self) -> Option<&EventsGate> {
        self.gate()?.events_gate.as_ref()
    }

    /// The backup with a store to copy from, if the Etcd only copies backups (R17-24).
    #[must_use]
    pub fn copy(&self) -> Option<&Backup> {
        self.backup.as_ref().filter(|backup| backup.source.is_some())
    }
}

/// The ownership epoch of an Etcd's data; 1 if unset.
pub(crate) fn epoch(etcd: &Etcd) -> Result<i64> {
    let Some(text) = etcd.annotations().get(OWNERSHIP_EPOCH) else {
        return Ok(1);
    };
    let epoch = text.parse().ok().filter(|epoch| *epoch >= 1);
    epoch.ok_or_else(|| {
        wrong(
            "metadata.annotations",
            format!("say {OWNERSHIP_EPOCH}: {text:?}; write a whole number from 1 on, or leave it out for 1"),
        )
    })
}

/// The earlier epoch that an Etcd continues with the same data. An Etcd continues no later epoch.
fn continued_epoch(etcd: &Etcd) -> Result<Option<i64>> {
    let Some(text) = etcd.annotations().get(DRUID_CONTINUES_EPOCH) else {
        return Ok(None);
    };
    let own = epoch(etcd)?;
    let continued = text.parse::<i64>().ok();
    let continued = continued.filter(|continued| (1..own).contains(continued));
    continued.map(Some).ok_or_else(|| {
        wrong(
            "metadata.annotations",
            format!(
                "say {DRUID_CONTINUES_EPOCH}: {text:?}; write a whole number from 1 to below the epoch {own} \
                 of the Etcd, or leave it out"
            ),
        )
    })
}

fn member(etcd: &EtcdConfig, shared: Option<&SharedConfig>, tls: Tls, defaults: &Defaults) -> Result<Member> {
    let quota_bytes = match &etcd.quota {
        None => QUOTA_BYTES,
        Some(quota) => bytes::parse(quota).filter(|bytes| *bytes > 0).ok_or_else(|| {
            wrong(
                "spec.etcd.quota",
                format!("is {:?}; write a number of bytes such as 8Gi", quota.0),
            )
        })?,
    };
    let mode = shared
        .and_then(|shared| shared.auto_compaction_mode)
        .unwrap_or(CompactionMode::Periodic);
    let retention = shared.and_then(|shared| shared.auto_compaction_retention.clone());
    if mode == CompactionMode::Revision && retention.is_none() {
        return Err(wrong(
            "spec.sharedConfig.autoCompactionRetention",
            "is missing; say how many revisions are kept, as autoCompactionMode is revision",
        ));
    }
    Ok(Member {
        image: image("spec.etcd.image", etcd.image.as_ref(), &defaults.etcd_image)?,
        client_port: etcd.client_port.unwrap_or(CLIENT_PORT),
        peer_port: etcd.server_port.unwrap_or(PEER_PORT),
        tls,
        quota_bytes,
        metrics: match etcd.metrics {
            Some(MetricsLevel::Extensive) => "extensive",
            Some(MetricsLevel::Basic) | None => "basic",
        },
        grpc_gateway: etcd.enable_grpc_gateway.unwrap_or(false),
        snapshot_count: etcd.snapshot_count,
        auto_compaction_mode: match mode {
            CompactionMode::Periodic => "periodic",
            CompactionMode::Revision => "revision",
        },
        auto_compaction_retention: retention.unwrap_or_else(|| COMPACTION_RETENTION.to_owned()),
        freelist_type: etcd.backend_bbolt_freelist_type.map(|freelist| match freelist {
            FreelistType::Array => "array",
            FreelistType::Map => "map",
        }),
        resources: etcd.resources.clone(),
    })
}
