//! Applies the objects of an Etcd as specified.

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::Job,
    core::v1::{Service, ServiceAccount},
};
use kube::{Api, ResourceExt};
use runtime::{
    Error, Result,
    client::{
        Cluster, Seed,
        apply::{FieldManager, delete_exactly},
    },
};
use serde_json::json;
use std::time::Duration;

use crate::{
    names::DRUID,
    objects::{
        copy_job::copy_job,
        service_account::service_account,
        services::{client_service, peer_service},
        stateful_set::{ON_DELETE, stateful_set},
    },
    observed::Observed,
    retained_volume,
    status::copy::is_complete,
    wanted::{Backup, ValidatedEtcd, wrong},
};

const MANAGER: FieldManager = FieldManager(DRUID);
/// Requeue interval for a Job that is being deleted; its watch usually reports sooner. Shorter than users
/// wait for a copy.
const JOB_GONE_AFTER: Duration = Duration::from_secs(2);

/// Applies every object. A repeated call changes nothing, and reverts changes of other managers in fields of
/// this controller.
pub async fn ensure(seed: &Seed, wanted: &ValidatedEtcd, observed: &Observed) -> Result<()> {
    let accounts: Api<ServiceAccount> = seed.namespaced(&wanted.namespace);
    MANAGER.apply(&accounts, &service_account(wanted)).await?;
    match wanted.copy() {
        Some(backup) => ensure_copy(seed, wanted, backup, observed).await,
        None => ensure_member(seed, wanted, observed).await,
    }
}

async fn ensure_member(seed: &Seed, wanted: &ValidatedEtcd, observed: &Observed) -> Result<()> {
    if let Some(job) = &observed.job {
        // etcd must not restore from a store that a copy still writes to.
        delete_exactly(&seed.namespaced(&wanted.namespace), job).await?;
        return Err(Error::not_ready(
            JOB_GONE_AFTER,
            "the Job that copied backups is being removed",
        ));
    }
    if !observed.copies.is_empty() {
        return Err(Error::not_ready(
            JOB_GONE_AFTER,
            "the pod that copied backups is being removed",
        ));
    }
    retained_volume::adopt(seed, wanted, observed).await?;
    let services: Api<Service> = seed.namespaced(&wanted.namespace);
    MANAGER.apply(&services, &client_service(wanted)).await?;
    MANAGER.apply(&services, &peer_service(wanted)).await?;
    let stateful_sets: Api<StatefulSet> = seed.namespaced(&wanted.namespace);
    if observed.stateful_set.as_ref().is_some_and(rolls_by_itself) {
        // The StatefulSet comes from an earlier release. The API server had defaulted the parameters of the
        // old strategy. These parameters would stay beside the new strategy, and the API server would refuse
        // both together.
        let strategy = json!({"spec": {"updateStrategy": {"type": ON_DELETE, "rollingUpdate": null}}});
        MANAGER.merge(&stateful_sets, &wanted.name, &strategy).await?;
    }
    MANAGER.apply(&stateful_sets, &stateful_set(wanted)).await?;
    Ok(())
}

fn rolls_by_itself(set: &StatefulSet) -> bool {
    let strategy = set.spec.as_ref().and_then(|spec| spec.update_strategy.as_ref());
    strategy.is_none_or(|strategy| strategy.type_.as_deref() != Some(ON_DELETE))
}

async fn ensure_copy(
    seed: &Seed,
    wanted: &ValidatedEtcd,
    backup: &Backup,
    observed: &Observed,
) -> Result<()> {
    if let Some(running) = &observed.stateful_set {
        return Err(wrong(
            "spec.backup.sourceStore",
            format!(
                "was added while StatefulSet {} runs etcd; backups can only be copied before etcd first starts, so \
                 remove the field, or delete the Etcd and create it again",
                running.name_any()
            ),
        ));
    }
    if observed.job.as_ref().is_some_and(is_complete) {
        return Ok(());
    }
    if observed
        .job
        .as_ref()
        .is_some_and(|job| job.metadata.deletion_timestamp.is_some())
    {
        return Err(Error::not_ready(
            JOB_GONE_AFTER,
            "the Job that copies backups is being replaced",
        ));
    }
    let jobs: Api<Job> = seed.namespaced(&wanted.namespace);
    match (
        MANAGER.apply(&jobs, &copy_job(wanted, backup)).await,
        &observed.job,
    ) {
        // The template of a Job is immutable. A restarted copy continues where the former copy stopped.
        (Err(Error::Config { .. }), Some(old)) => {
            delete_exactly(&jobs, old).await?;
            Err(Error::not_ready(
                JOB_GONE_AFTER,
                "the Job that copies backups is being replaced by one as specified now",
            ))
        }
        (other, _) => other.map(|_| ()),
    }
}
