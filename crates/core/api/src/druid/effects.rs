//! Fields of an Etcd that the API accepts and that have no effect yet. etcd-druid warns about such a field,
//! and `kubectl explain` says so. Listed in `docs/understand/etcd-druid.md`.

use super::Etcd;

/// The path of a field, and whether an Etcd sets the field.
type Field = (&'static str, fn(&Etcd) -> bool);

/// The fields. Each path includes all fields below.
const FIELDS: &[Field] = &[
    ("spec.memberNamePrefix", |etcd| {
        etcd.spec.member_name_prefix.is_some()
    }),
    ("spec.etcd.defragmentationSchedule", |etcd| {
        etcd.spec.etcd.defragmentation_schedule.is_some()
    }),
    ("spec.etcd.etcdDefragTimeout", |etcd| {
        etcd.spec.etcd.etcd_defrag_timeout.is_some()
    }),
    ("spec.etcd.wrapperPort", |etcd| {
        etcd.spec.etcd.wrapper_port.is_some()
    }),
    ("spec.etcd.authSecretRef", |etcd| {
        etcd.spec.etcd.auth_secret_ref.is_some()
    }),
    ("spec.etcd.peerUrlTls", |etcd| {
        etcd.spec.etcd.peer_url_tls.is_some()
    }),
    ("spec.etcd.heartbeatDuration", |etcd| {
        etcd.spec.etcd.heartbeat_duration.is_some()
    }),
    ("spec.etcd.additionalAdvertisePeerURLs", |etcd| {
        !etcd.spec.etcd.additional_advertise_peer_urls.is_empty()
    }),
    ("spec.etcd.bootstrapWithExistingCluster", |etcd| {
        etcd.spec.etcd.bootstrap_with_existing_cluster.is_some()
    }),
    ("spec.backup.snapshotCompaction", |etcd| {
        etcd.spec.backup.snapshot_compaction.is_some()
    }),
    ("spec.backup.deltaSnapshotRetentionPeriod", |etcd| {
        etcd.spec.backup.delta_snapshot_retention_period.is_some()
    }),
    ("spec.backup.enableProfiling", |etcd| {
        etcd.spec.backup.enable_profiling.is_some()
    }),
    ("spec.backup.leaderElection", |etcd| {
        etcd.spec.backup.leader_election.is_some()
    }),
];

/// The paths of all fields of an Etcd that have no effect.
pub fn idle_paths() -> impl Iterator<Item = &'static str> {
    FIELDS.iter().map(|(path, _)| *path)
}

/// The fields of this Etcd that have no effect.
#[must_use]
pub fn without_effect(etcd: &Etcd) -> Vec<&'static str> {
    let set = FIELDS.iter().filter(|(_, is_set)| is_set(etcd));
    set.map(|(path, _)| *path).collect()
}
