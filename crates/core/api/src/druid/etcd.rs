//! `Etcd`: an etcd cluster with backups.

use k8s_openapi::{
    api::core::v1::{Affinity, TopologySpreadConstraint},
    apimachinery::pkg::{api::resource::Quantity, apis::meta::v1::LabelSelector},
};

use super::{BackupSpec, EtcdConfig, EtcdStatus};
use crate::derive::{
    BTreeMap, CustomResource, Deserialize, JsonSchema, KubeSchema, Serialize, skip_serializing_none,
};

/// The wanted etcd cluster with its backups.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "druid.gardener.cloud",
    version = "v1alpha1",
    kind = "Etcd",
    namespaced,
    status = "EtcdStatus",
    derive = "Default",
    derive = "PartialEq",
    doc = "One etcd cluster with its backups.",
    scale(
        spec_replicas_path = ".spec.replicas",
        status_replicas_path = ".status.replicas",
        label_selector_path = ".status.selector"
    ),
    printcolumn(name = "Ready", type_ = "string", json_path = ".status.ready"),
    printcolumn(
        name = "Quorate",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"Ready\")].status"
    ),
    printcolumn(
        name = "All Members Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"AllMembersReady\")].status"
    ),
    printcolumn(
        name = "Backup Ready",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"BackupReady\")].status"
    ),
    printcolumn(
        name = "Cluster ID Mismatch",
        type_ = "string",
        json_path = ".status.conditions[?(@.type==\"ClusterIDMismatch\")].status"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(
        name = "Cluster Size",
        type_ = "integer",
        json_path = ".spec.replicas",
        priority = "1"
    ),
    printcolumn(
        name = "Current Replicas",
        type_ = "integer",
        json_path = ".status.currentReplicas",
        priority = "1"
    ),
    printcolumn(
        name = "Ready Replicas",
        type_ = "integer",
        json_path = ".status.readyReplicas",
        priority = "1"
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "has(oldSelf.storageClass) == has(self.storageClass)",
    "storageClass is immutable: it cannot be added or removed later"
))]
#[x_kube(validation = (
    "has(oldSelf.volumeClaimTemplate) == has(self.volumeClaimTemplate)",
    "volumeClaimTemplate is immutable: it cannot be added or removed later"
))]
#[x_kube(validation = (
    "has(oldSelf.memberNamePrefix) == has(self.memberNamePrefix)",
    "memberNamePrefix is immutable: it cannot be added or removed later"
))]
pub struct EtcdSpec {
    /// Label selector of the cluster's pods, for older clients. Has no effect: pods have `spec.labels`.
    pub selector: Option<LabelSelector>,
    /// Labels of the pods of etcd.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the pods of etcd.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Settings of the etcd process.
    pub etcd: EtcdConfig,
    /// Backups, restore and owner check of the etcd.
    pub backup: BackupSpec,
    /// Settings shared by etcd and the backup process.
    pub shared_config: Option<SharedConfig>,
    /// Affinity and topology spread of the pods.
    pub scheduling_constraints: Option<SchedulingConstraints>,
    /// Number of members of the etcd cluster.
    #[schemars(range(min = 0))]
    #[x_kube(validation = (
        "self == 0 || self >= oldSelf",
        "replicas can grow, or be set to 0, but not shrink to another number"
    ))]
    pub replicas: i32,
    /// Name of the PriorityClass of the pods. Absent for the default of the cluster.
    pub priority_class_name: Option<String>,
    /// Name of the StorageClass of the volumes. Absent for the default of the cluster.
    #[schemars(length(max = 253))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub storage_class: Option<String>,
    /// Size of the volumes. Default: 16Gi.
    pub storage_capacity: Option<Quantity>,
    /// Name of the claim template of the volumes. Default: the name of the Etcd.
    #[schemars(length(max = 253))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub volume_claim_template: Option<String>,
    /// Prefix of the names of the members.
    #[schemars(length(max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    #[x_kube(validation = ("self == oldSelf", "Value is immutable"))]
    pub member_name_prefix: Option<String>,
    /// Whether all containers run as root. Default: false.
    pub run_as_root: Option<bool>,
}

/// Where pods may go.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingConstraints {
    /// Affinity of the pods to nodes and pods.
    pub affinity: Option<Affinity>,
    /// Spread of the pods over nodes and zones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
}

/// Settings shared by etcd and the backup process.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SharedConfig {
    /// Mode of the automatic compaction: `periodic` (by age) or `revision` (by number). Default: `periodic`.
    pub auto_compaction_mode: Option<CompactionMode>,
    /// Age or number of revisions that the compaction keeps. Default: 30m; mode `revision` needs a number.
    pub auto_compaction_retention: Option<String>,
}

/// Mode of the automatic compaction: `periodic` (by age) or `revision` (by number). Default: `periodic`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompactionMode {
    /// By age.
    Periodic,
    /// By number.
    Revision,
}
