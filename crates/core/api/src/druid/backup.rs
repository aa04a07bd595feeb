//! Backups and restore of an etcd, and the owner check for writes of backups.

use k8s_openapi::{api::core::v1::ResourceRequirements, apimachinery::pkg::api::resource::Quantity};

use super::{TLSConfig, etcd_config::DURATION};
use crate::{
    derive::{Deserialize, JsonSchema, KubeSchema, Serialize, skip_serializing_none},
    meta::SecretReference,
};

/// An address with a port, as `192.0.2.1:53` or `[2001:db8::1]:53`.
const ADDRESS_AND_PORT: &str = r"^([0-9.]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}$";

/// A host name or IPv4 address with a port, as `etcd-events-client:2379`.
const HOST_AND_PORT: &str = r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?:[0-9]{1,5}$";

/// Settings of backups.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "!(has(self.deltaSnapshotPeriod) && has(self.garbageCollectionPeriod)) || duration(self.deltaSnapshotPeriod).getSeconds() < duration(self.garbageCollectionPeriod).getSeconds()",
    "garbageCollectionPeriod must be longer than deltaSnapshotPeriod"
))]
pub struct BackupSpec {
    /// Port of the HTTP interface of the backup process. Default: 8080.
    pub port: Option<i32>,
    /// TLS of the HTTP interface of the backup process. Default: the certificate of etcd.
    pub tls: Option<TLSConfig>,
    /// Image of the backup process. Absent for the default of etcd-druid.
    pub image: Option<String>,
    /// Object store for the backups. Absent if no backups are taken.
    pub store: Option<StoreSpec>,
    /// Where backups are taken over from before etcd first starts, if not from `store` (R17-24).
    pub source_store: Option<StoreSpec>,
    /// Revision of etcd that the backups copied from `sourceStore` must reach. The copy fails if no chain of
    /// snapshots that was read and hashed reaches this revision. Without this field the newest chain is
    /// copied. No effect without `sourceStore`.
    #[schemars(range(min = 1))]
    pub required_revision: Option<i64>,
    /// The final snapshot of the source, with `requiredRevision`. A chain of different snapshots that reaches
    /// the revision is equally good. No effect without `requiredRevision`.
    pub required_snapshot: Option<RequiredSnapshot>,
    /// Number of changes up to `requiredRevision` that may be missing in the copied backups. Default: 0. No
    /// effect without `requiredRevision`.
    #[schemars(range(min = 0))]
    pub accepted_loss: Option<i64>,
    /// Owner check: only the owner of the shoot serves and backs up the etcd (R17-13).
    pub owner_check: Option<OwnerCheckSpec>,
    /// Resources of the container of the backup process.
    pub resources: Option<ResourceRequirements>,
    /// Settings of a job that merges chains of snapshots.
    pub snapshot_compaction: Option<SnapshotCompaction>,
    /// Schedule of full snapshots: a cron expression with five fields, in UTC. Default: `0 */24 * * *`.
    #[schemars(length(max = 128))]
    pub full_snapshot_schedule: Option<String>,
    /// Policy for the deletion of old snapshots. Default: `LimitBased`.
    pub garbage_collection_policy: Option<GarbageCollectionPolicy>,
    /// Number of full snapshots that the policy `LimitBased` keeps. Default: 7.
    #[serde(rename = "maxBackupsLimitBasedGC")]
    pub max_backups_limit_based_gc: Option<i32>,
    /// Time between two deletions of old snapshots, such as `12h`. Default: 12h.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub garbage_collection_period: Option<String>,
    /// Time between two delta snapshots, such as `5m`. Default: 5m.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub delta_snapshot_period: Option<String>,
    /// Size of the events in memory, in bytes, at which a delta snapshot is taken before
    /// `deltaSnapshotPeriod` ends. Default: 10Mi.
    pub delta_snapshot_memory_limit: Option<Quantity>,
    /// Time for which delta snapshots are kept that no full snapshot needs.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub delta_snapshot_retention_period: Option<String>,
    /// Compression of new snapshots. Snapshots of every compression can be restored. Default: `gzip`.
    pub compression: Option<Compression>,
    /// Whether the backup process serves profiles.
    pub enable_profiling: Option<bool>,
    /// Longest time for which a copy waits for the final snapshot of the source. Default: a flag of
    /// etcd-druid, 3m.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub etcd_snapshot_timeout: Option<String>,
    /// Settings of the leader election of the backup process. Has no effect.
    pub leader_election: Option<LeaderElection>,
}

/// A snapshot that a copy looks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequiredSnapshot {
    /// Name of the object below the prefix of `sourceStore`.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The sha256 of the object as stored, in hex. An object with this name and a different hash does not
    /// count.
    #[schemars(regex(pattern = r"^[0-9a-f]{64}$"))]
    pub sha256: String,
}

/// A place in a bucket.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoreSpec {
    /// Name of the bucket with the backups.
    #[schemars(
        length(max = 63),
        regex(pattern = r"^[a-zA-Z0-9][a-zA-Z0-9._-]{1,61}[a-zA-Z0-9]$")
    )]
    pub container: Option<String>,
    /// Address of the object store. Absent for the address of the provider.
    #[schemars(length(max = 2048))]
    #[x_kube(validation = ("isURL(self)", "must be an URL"))]
    pub endpoint_override: Option<String>,
    /// Prefix of the names of all objects of this etcd in the bucket.
    pub prefix: String,
    /// Kind of the object store, such as `S3`.
    pub provider: Option<String>,
    /// Secret with the credentials for the object store.
    pub secret_ref: Option<SecretReference>,
}

/// Owner check: only the owner of the shoot serves and backs up the etcd (docs/understand/ownership.md, also
/// for the defaults).
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = (
    "('.' + self.name.lowerAscii() + (self.name.endsWith('.') ? '' : '.')).endsWith('.' + self.zone.lowerAscii() + (self.zone.endsWith('.') ? '' : '.'))",
    "name must be in zone"
))]
#[x_kube(validation = (
    "duration(has(self.interval) ? self.interval : '4s') >= duration(has(self.timeout) ? self.timeout : '1s') + duration(has(self.timeout) ? self.timeout : '1s') + duration(has(self.storeTimeout) ? self.storeTimeout : '1s')",
    "interval must be at least as long as a check may take (2 x timeout + storeTimeout)"
))]
#[x_kube(validation = (
    "duration(has(self.validity) ? self.validity : '12s') >= duration(has(self.interval) ? self.interval : '4s') + duration(has(self.interval) ? self.interval : '4s') + duration(has(self.timeout) ? self.timeout : '1s') + duration(has(self.timeout) ? self.timeout : '1s') + duration(has(self.storeTimeout) ? self.storeTimeout : '1s')",
    "validity must be at least 2 x interval + 2 x timeout + storeTimeout, so that one failed check ends no permit"
))]
#[x_kube(validation = (
    "duration(has(self.fence) ? self.fence : '24s') >= duration(has(self.propagation) ? self.propagation : '2s') + duration(has(self.dnsCacheTTL) ? self.dnsCacheTTL : '0s') + duration(has(self.validity) ? self.validity : '12s') + duration(has(self.requests) ? self.requests : '5s') + duration('4s')",
    "fence must be longer than propagation + dnsCacheTTL + validity + requests + 4s (an unnoticed pause of the machine), or a destination begins while this seed may still act"
))]
pub struct OwnerCheckSpec {
    /// The name of the owner's DNS record; there is room for `epoch.` in front.
    #[schemars(length(min = 1, max = 247))]
    pub name: String,
    /// Required value of the owner record: the identity of this seed.
    #[schemars(length(min = 1, max = 255))]
    pub id: String,
    /// The DNS zone of the record. The authoritative servers of the zone are asked directly, without a cache.
    #[schemars(length(min = 1, max = 253))]
    pub zone: String,
    /// The DNS servers of the zone, as `address:port`. Absent to find the servers by the NS records of the
    /// zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 64), regex(pattern = ADDRESS_AND_PORT)))]
    pub authorities: Vec<String>,
    /// The uid of the shoot, required in `ownership.json` in the store. The store is asked where the DNS
    /// servers do not answer.
    #[serde(rename = "shootUID")]
    #[schemars(length(min = 1, max = 253))]
    pub shoot_uid: String,
    /// Time between two lookups of the owner record. Default: 4s.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub interval: Option<String>,
    /// Longest duration of a single try to ask the DNS servers. A lookup has two tries. Default: 1s.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub timeout: Option<String>,
    /// The longest time for which a DNS cache between the process and the servers may answer. The processes
    /// of Repot cache no answer.
    #[serde(rename = "dnsCacheTTL")]
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub dns_cache_ttl: Option<String>,
    /// Longest duration of a request to the store. Default: 1s.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub store_timeout: Option<String>,
    /// Time for which an answer permits the process to act. Default: 12s.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub validity: Option<String>,
    /// The longest time for which a request may continue after the permit has ended. Default: 5s.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub requests: Option<String>,
    /// The longest time for which a DNS server may still show the former record to some clients after showing
    /// the new record.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub propagation: Option<String>,
    /// Time for which a destination waits before a takeover. The other durations are checked against this
    /// field.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub fence: Option<String>,
    /// Highest error of a clock, in parts of a million. Default: 1000.
    #[schemars(range(min = 0, max = 100_000))]
    pub drift: Option<i32>,
    /// Behaviour when neither the DNS servers nor the store answer. Default: `Deactivate`.
    pub silence: Option<OwnerCheckSilence>,
    /// Forwards clients of the etcd with the Events while this seed owns the shoot, so that a fenced seed
    /// acknowledges no Events. Without this field these clients connect to that etcd directly, without an
    /// owner check.
    pub events_gate: Option<EventsGateSpec>,
}

impl OwnerCheckSpec {
    /// The intervals and bounds by field, unchanged.
    #[must_use]
    pub fn durations(&self) -> [(&'static str, Option<&str>); 8] {
        [
            ("interval", self.interval.as_deref()),
            ("timeout", self.timeout.as_deref()),
            ("storeTimeout", self.store_timeout.as_deref()),
            ("validity", self.validity.as_deref()),
            ("requests", self.requests.as_deref()),
            ("propagation", self.propagation.as_deref()),
            ("dnsCacheTTL", self.dns_cache_ttl.as_deref()),
            ("fence", self.fence.as_deref()),
        ]
    }
}

/// A second gate beside etcd, for clients of the etcd with the Events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventsGateSpec {
    /// Port of the Service `<name>-client` at which clients of the etcd with the Events connect. Must differ
    /// from the ports of etcd and of the backup process.
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,
    /// Host and port of the etcd with the Events, as `etcd-events-client:2379`. The name is resolved for each
    /// connection. TLS passes untouched, so that the certificate of that etcd must also hold the name
    /// `<name>-client`.
    #[schemars(length(max = 259), regex(pattern = HOST_AND_PORT))]
    pub target: String,
}

/// Behaviour of etcd when neither the DNS servers nor the store answer. Default: `Deactivate`. With
/// `Tolerate`, waiting cannot fence the seed: a takeover needs the statement of a person that the seed is
/// off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OwnerCheckSilence {
    /// etcd is not served any more when the last answer is not good any more (R17-47).
    Deactivate,
    /// etcd is served until a witness reports the loss of the shoot.
    Tolerate,
}

/// Shortening of chains of snapshots.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotCompaction {
    /// Resources of the container that merges snapshots.
    pub resources: Option<ResourceRequirements>,
    /// Number of events after which the compaction starts. Has no effect.
    pub events_threshold: Option<i64>,
    /// Number of events after which a full snapshot replaces the compaction. Has no effect.
    pub trigger_full_snapshot_threshold: Option<i64>,
}

/// Policy for the deletion of old snapshots. Default: `LimitBased`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum GarbageCollectionPolicy {
    /// The older, the fewer.
    Exponential,
    /// All but the newest.
    LimitBased,
}

/// Compression of snapshots.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Compression {
    /// Whether new snapshots are compressed. Default: true.
    pub enabled: Option<bool>,
    /// Compression algorithm of new snapshots; `lzw` is refused. Default: `gzip`.
    pub policy: Option<CompressionPolicy>,
}

/// Compression algorithm of new snapshots; `lzw` is refused. Default: `gzip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CompressionPolicy {
    /// As `gzip` does.
    Gzip,
    /// As `compress` does.
    Lzw,
    /// As `zlib` does.
    Zlib,
    /// As `zstd` does.
    Zstd,
}

/// Leader election of the backup process.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeaderElection {
    /// Time between two lookups of the leader of etcd.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub reelection_period: Option<String>,
    /// Longest time for a connection to etcd.
    #[schemars(length(max = 64), regex(pattern = DURATION))]
    pub etcd_connection_timeout: Option<String>,
}
