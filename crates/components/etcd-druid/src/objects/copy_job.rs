//! The Job that copies backups from one object store to another before an etcd is started from them (R17-24
//! to R17-29).

use k8s_openapi::api::{
    batch::v1::{Job, JobSpec},
    core::v1::{PodSpec, PodTemplateSpec},
};

use super::{backup_restore, meta, pod_meta, security, volumes};
use crate::{
    names::{COPY_COMPONENT, COPY_JOB},
    wanted::{Backup, ValidatedEtcd},
};

/// The Job does not give up: a wrong credential may be fixed hours later, and the copy then continues. The
/// controller bounds the pause between two tries by replacing the Job (see [`crate::retry`]).
const BACKOFF_LIMIT: i32 = 10_000;
/// Seconds between SIGTERM and SIGKILL; each object is copied whole or not at all, so no data are lost.
const GRACE_SECONDS: i64 = 10;

/// The Job `etcd-copy` of an Etcd with a store to copy from.
#[must_use]
pub fn copy_job(wanted: &ValidatedEtcd, backup: &Backup) -> Job {
    Job {
        metadata: meta(wanted, COPY_JOB, COPY_COMPONENT),
        spec: Some(JobSpec {
            backoff_limit: Some(BACKOFF_LIMIT),
            template: PodTemplateSpec {
                metadata: Some(pod_meta(wanted, COPY_COMPONENT)),
                spec: Some(PodSpec {
                    restart_policy: Some("OnFailure".to_owned()),
                    service_account_name: Some(wanted.name.clone()),
                    automount_service_account_token: Some(false),
                    enable_service_links: Some(false),
                    termination_grace_period_seconds: Some(GRACE_SECONDS),
                    security_context: Some(security::pod(wanted)),
                    priority_class_name: wanted.priority_class.clone(),
                    containers: vec![backup_restore::copy(wanted, backup)],
                    volumes: Some(volumes::of_copy(backup)),
                    ..PodSpec::default()
                }),
            },
            ..JobSpec::default()
        }),
        status: None,
    }
}
