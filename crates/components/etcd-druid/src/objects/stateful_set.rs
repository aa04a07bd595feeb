//! The StatefulSet that runs etcd.

use k8s_openapi::{
    api::{
        apps::v1::{
            StatefulSet, StatefulSetPersistentVolumeClaimRetentionPolicy, StatefulSetSpec,
            StatefulSetUpdateStrategy,
        },
        core::v1::{
            HostAlias, PersistentVolumeClaim, PersistentVolumeClaimSpec, PodSpec, PodTemplateSpec,
            VolumeResourceRequirements,
        },
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
};

use super::{backup_restore, etcd, meta, pod_meta, security, volumes};
use crate::{
    names::{self, MEMBER_COMPONENT},
    wanted::ValidatedEtcd,
};

/// Seconds between SIGTERM and SIGKILL. etcd stops in well under a second; a longer time only prolongs a
/// move.
const GRACE_SECONDS: i64 = 10;

/// The update strategy with which Kubernetes does not restart pods of an older template.
pub const ON_DELETE: &str = "OnDelete";

/// The StatefulSet of an Etcd.
#[must_use]
pub fn stateful_set(wanted: &ValidatedEtcd) -> StatefulSet {
    StatefulSet {
        metadata: meta(wanted, &wanted.name, MEMBER_COMPONENT),
        spec: Some(StatefulSetSpec {
            replicas: Some(wanted.replicas),
            service_name: Some(names::peer_service(&wanted.name)),
            // A pod that never becomes ready (its restore fails) must be replaced when its template is fixed.
            pod_management_policy: Some("Parallel".to_owned()),
            // The controller decides whether a change restarts a pod: changes that only take effect at the
            // next start do not.
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some(ON_DELETE.to_owned()),
                rolling_update: None,
            }),
            selector: LabelSelector {
                match_labels: Some(names::labels(&wanted.name, MEMBER_COMPONENT)),
                match_expressions: None,
            },
            // A later Etcd of the same name must never find the data of a deleted Etcd (I6); a stopped Etcd
            // keeps its data.
            persistent_volume_claim_retention_policy: Some(StatefulSetPersistentVolumeClaimRetentionPolicy {
                when_deleted: Some("Delete".to_owned()),
                when_scaled: Some("Retain".to_owned()),
            }),
            template: PodTemplateSpec {
                metadata: Some(pod_meta(wanted, MEMBER_COMPONENT)),
                spec: Some(pod(wanted)),
            },
            volume_claim_templates: Some(vec![claim(wanted)]),
            ..StatefulSetSpec::default()
        }),
        status: None,
    }
}

fn pod(wanted: &ValidatedEtcd) -> PodSpec {
    let backup = wanted.backup.as_ref();
    let mut containers = vec![etcd::container(wanted)];
    containers.extend(backup.map(|backup| backup_restore::server(wanted, backup)));
    PodSpec {
        service_account_name: Some(wanted.name.clone()),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        // backup-restore ends etcd by a signal when the shoot is no longer this seed's (R17-41, R17-42).
        share_process_namespace: Some(true),
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        security_context: Some(security::pod(wanted)),
        priority_class_name: wanted.priority_class.clone(),
        affinity: wanted.affinity.clone(),
        topology_spread_constraints: wanted.topology_spread_constraints.clone(),
        // A name that the certificate holds and that no DNS server has to be asked for.
        host_aliases: Some(vec![HostAlias {
            ip: "127.0.0.1".to_owned(),
            hostnames: Some(vec![names::local_host(&wanted.name)]),
        }]),
        init_containers: Some(vec![backup.map_or_else(
            || backup_restore::prepare(wanted),
            |backup| backup_restore::initialize(wanted, backup),
        )]),
        containers,
        volumes: Some(volumes::of_member(wanted)),
        ..PodSpec::default()
    }
}

fn claim(wanted: &ValidatedEtcd) -> PersistentVolumeClaim {
    let volume = &wanted.volume;
    PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(volume.claim.clone()),
            labels: Some(names::labels(&wanted.name, MEMBER_COMPONENT)),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            storage_class_name: volume.storage_class.clone(),
            resources: Some(VolumeResourceRequirements {
                requests: Some([("storage".to_owned(), volume.capacity.clone())].into()),
                limits: None,
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    }
}
