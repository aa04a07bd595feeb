//! Fields that the API accepts and that have no effect yet; the controller warns, so that no user relies on
//! such a field. Listed in `docs/understand/etcd-druid.md`.

use api::druid::Etcd;

/// The fields of this Etcd that have no effect.
#[must_use]
pub fn without_effect(etcd: &Etcd) -> Vec<&'static str> {
    let (config, backup) = (&etcd.spec.etcd, &etcd.spec.backup);
    [
        ("spec.memberNamePrefix", etcd.spec.member_name_prefix.is_some()),
        (
            "spec.etcd.defragmentationSchedule",
            config.defragmentation_schedule.is_some(),
        ),
        (
            "spec.etcd.etcdDefragTimeout",
            config.etcd_defrag_timeout.is_some(),
        ),
        ("spec.etcd.wrapperPort", config.wrapper_port.is_some()),
        ("spec.etcd.authSecretRef", config.auth_secret_ref.is_some()),
        ("spec.etcd.peerUrlTls", config.peer_url_tls.is_some()),
        ("spec.etcd.heartbeatDuration", config.heartbeat_duration.is_some()),
        (
            "spec.etcd.additionalAdvertisePeerURLs",
            !config.additional_advertise_peer_urls.is_empty(),
        ),
        (
            "spec.etcd.bootstrapWithExistingCluster",
            config.bootstrap_with_existing_cluster.is_some(),
        ),
        (
            "spec.backup.snapshotCompaction",
            backup.snapshot_compaction.is_some(),
        ),
        (
            "spec.backup.deltaSnapshotRetentionPeriod",
            backup.delta_snapshot_retention_period.is_some(),
        ),
        ("spec.backup.enableProfiling", backup.enable_profiling.is_some()),
        ("spec.backup.leaderElection", backup.leader_election.is_some()),
    ]
    .into_iter()
    .filter_map(|(field, is_set)| is_set.then_some(field))
    .collect()
}
