//! How an etcd cluster is.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use crate::{
    derive::{Deserialize, JsonSchema, Serialize, Time, skip_serializing_none},
    meta::CrossVersionObjectReference,
};

/// Observed state of the etcd cluster.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdStatus {
    /// The generation that was acted on.
    pub observed_generation: Option<i64>,
    /// Reference to the StatefulSet of etcd.
    pub etcd: Option<CrossVersionObjectReference>,
    /// Conditions of the etcd cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<EtcdCondition>,
    /// Errors of the last reconciliation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub last_errors: Vec<EtcdLastError>,
    /// Type and state of the last operation of etcd-druid on the Etcd.
    pub last_operation: Option<EtcdLastOperation>,
    /// Number of pods of the present revision of the StatefulSet.
    pub current_replicas: Option<i32>,
    /// Number of pods that the StatefulSet has.
    pub replicas: Option<i32>,
    /// Number of pods that are ready.
    pub ready_replicas: Option<i32>,
    /// Whether a quorum is ready and all objects are as specified.
    pub ready: Option<bool>,
    /// Label selector of the cluster's pods, for older clients.
    pub label_selector: Option<LabelSelector>,
    /// Pods of the cluster, as text.
    pub selector: Option<String>,
    /// State of each member of the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<EtcdMemberStatus>,
    /// Whether members speak TLS among themselves.
    #[serde(rename = "peerUrlTLSEnabled")]
    pub peer_url_tls_enabled: Option<bool>,
    /// The existing cluster that this cluster joined.
    pub bootstrap_with_existing_cluster: Option<JoinedCluster>,
    /// The copied chain of backups, where `spec.backup.sourceStore` requests a copy.
    pub copied: Option<CopiedChain>,
    /// The bytes that the copy has brought so far, where `spec.backup.sourceStore` asks for a copy.
    /// etcd-druid asks the copying process every 5 s, and keeps the last answer. Absent until the process has
    /// answered once.
    pub copying: Option<CopyProgress>,
    /// Owner check of the process beside etcd, as reported by this process. The last report stays while the
    /// process does not answer. Absent where `spec.backup.ownerCheck` is not set, and until the first answer
    /// of the process.
    pub owner_check: Option<ReportedOwnerCheck>,
    /// The data with which etcd began the ownership epoch: the data of an earlier epoch, from the volume or
    /// restored from the backups. Init container `initialize` reports these data in the termination message.
    /// Absent until the first start of etcd in that epoch has been observed.
    pub begun: Option<BegunEpoch>,
    /// The restore of a lost or unusable volume within an ownership epoch: changes that are in no backup are
    /// lost. Init container `initialize` reports the restore in the termination message. Absent where no
    /// volume was lost, and removed 7 days after the restore, or when a later ownership epoch begins.
    pub volume_loss: Option<VolumeLoss>,
}

/// The restore of a lost or unusable volume within an ownership epoch.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeLoss {
    /// The ownership epoch in which the volume was lost.
    pub epoch: i64,
    /// Last revision of etcd in the backups. Every change after this revision is lost; the number of lost
    /// changes is unknown.
    pub last_revision: i64,
    /// Revision with which etcd continued. The revision is above every revision that the former etcd has
    /// assigned, so that no revision stands for two changes, and clients list again.
    pub revision: i64,
    /// When the newest restored snapshot was taken: changes that etcd acknowledged before are not lost.
    /// Absent where the name of the snapshot has no valid time.
    pub saved: Option<Time>,
    /// When etcd was restored: etcd acknowledged no lost change after this time.
    pub restored: Time,
}

/// The data with which etcd began an ownership epoch.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BegunEpoch {
    /// The ownership epoch that began.
    pub epoch: i64,
    /// Where the data come from: `Kept` (the volume of the earlier epoch) or `Restored` (the backups).
    pub result: String,
    /// Last revision of the earlier epoch in these data.
    pub last_revision: i64,
    /// When the newest restored snapshot was taken, by the clock of the earlier owner. Absent without a
    /// restore, or where the name of the snapshot has no valid time.
    pub saved: Option<Time>,
    /// Whether the data hold every change that etcd acknowledged in the earlier epoch: the volume was kept,
    /// or the restored chain reaches the revision at which the earlier epoch was sealed. Default: false.
    #[serde(default)]
    pub complete: bool,
}

/// How a process beside etcd checks the owner.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReportedOwnerCheck {
    /// The DNS servers that the process asks for the owner records, as `address:port`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<String>,
    /// Whether these servers are named in the settings (`true`), or found by the NS records of the zone
    /// (`false`).
    pub servers_named: bool,
    /// The shortest time in seconds, rounded up, for which a destination has to wait for this process.
    pub least_fence_seconds: Option<i64>,
    /// The clock of the host that ends permits after a pause of the guest: `Rtc`, `Ptp` or `None`. Absent
    /// where the process does not report the clock.
    pub host_clock: Option<String>,
}

impl ReportedOwnerCheck {
    /// Whether permits of the process end after a pause of the guest by the hypervisor.
    #[must_use]
    pub fn reads_host_clock(&self) -> bool {
        matches!(self.host_clock.as_deref(), Some("Rtc" | "Ptp"))
    }
}

/// The progress of a copy of backups. A repeated copy counts the objects that are in the target already,
/// after a verification of these objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CopyProgress {
    /// Bytes that were copied, or found in the target, so far.
    #[schemars(range(min = 0))]
    pub copied_bytes: i64,
    /// Bytes of all objects to copy that were listed so far. The total grows while the source adds objects.
    #[schemars(range(min = 0))]
    pub total_bytes: i64,
}

/// The end of the backups that were copied.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CopiedChain {
    /// Whether the chain is the source's final snapshot alone.
    pub final_snapshot: bool,
    /// Revision of etcd up to which the chain has every change.
    pub last_revision: i64,
    /// When the newest snapshot of the chain was taken, by the clock of the source.
    pub saved: Option<Time>,
    /// Whether the chain holds every change that the source has acknowledged. The copying process has read
    /// and hashed each object of the chain, and the chain reaches `sealedRevision`, or is the final snapshot
    /// where that revision is not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub complete: bool,
    /// Revision of etcd at which the source ended the epoch: `spec.backup.requiredRevision`, else the
    /// revision that the source has recorded in the bucket. Absent where neither is known.
    pub sealed_revision: Option<i64>,
    /// Number of lost changes between `lastRevision` and `sealedRevision`: changes that are in no snapshot.
    /// `spec.backup.acceptedLoss` allows this loss. Absent without a known loss.
    pub lost_revisions: Option<i64>,
    /// Names of objects in the source's bucket that look like snapshots, and were left aside because the name
    /// cannot be read or the content cannot be trusted: the first five, each cut to 128 characters. These
    /// objects may hold changes that the copied chain lacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 5), extend("x-kubernetes-list-type" = "atomic"))]
    pub left_aside: Vec<String>,
}

/// An aspect of the cluster's state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdCondition {
    /// Type of the condition, e.g. `BackupReady`.
    pub type_: String,
    /// Status of the condition: `True`, `False`, `Unknown`, `Progressing`, `ConditionCheckError`.
    pub status: String,
    /// When `status` last changed.
    pub last_transition_time: Time,
    /// When the condition was last written.
    pub last_update_time: Time,
    /// Reason of the status, as a single CamelCase word.
    pub reason: String,
    /// Explanation of the status, for people.
    pub message: String,
}

/// An obstacle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdLastError {
    /// Code of the error, e.g. `ERR_SYNC_STATEFULSET`.
    pub code: String,
    /// Description of the error, with the remedy.
    pub description: String,
    /// When etcd-druid saw the error.
    pub observed_at: Time,
}

/// The last operation on the etcd cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdLastOperation {
    /// Type of the operation: `Create`, `Reconcile` or `Delete`.
    pub type_: String,
    /// State of the operation: `Processing`, `Succeeded`, `Error` or `Requeue`.
    pub state: String,
    /// Description of the operation for people.
    pub description: String,
    /// Id of the run, for a search in logs.
    #[serde(rename = "runID")]
    pub run_id: String,
    /// When this was last written.
    pub last_update_time: Time,
}

/// A member.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EtcdMemberStatus {
    /// Name of the member, such as `etcd-main-0`.
    pub name: String,
    /// Id of the member in the cluster, in hexadecimal.
    pub id: Option<String>,
    /// Role of the member: `Leader` or `Member`.
    pub role: Option<String>,
    /// `Ready`, `NotReady` or `Unknown`.
    pub status: String,
    /// Reason of the last change of the status.
    pub reason: String,
    /// When `status` last changed.
    pub last_transition_time: Time,
}

/// The existing cluster that was joined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinedCluster {
    /// When the member joined the existing cluster.
    pub joined_at: Time,
    /// Members of the cluster at the time of the join.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub members: Vec<JoinedMember>,
}

/// A member that was joined.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct JoinedMember {
    /// Name of the member in the existing cluster.
    pub name: String,
    /// Addresses of the member for peers.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub peer_urls: Vec<String>,
}
