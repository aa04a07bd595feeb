//! The etcd-main of an epoch that has ended in this seed, when the seed gets the shoot again. This occurs
//! when a move was cancelled after the source had sealed the epoch. The etcd stops and keeps the volume,
//! because no seed has newer data. [`crate::Etcds`] starts the etcd again in the next epoch.

use api::druid::Etcd;
use k8s_openapi::api::core::v1::Pod;
use runtime::{Cluster, Result, error::Explain, wait};
use serde_json::json;

use crate::{
    ConflictLimit, FIELD_MANAGER, Facts,
    etcd::MAIN,
    etcd_owner,
    verbs::{Sleep, Tasks},
};

/// See the module.
#[derive(Debug)]
pub struct EndedEtcd;

impl Sleep for EndedEtcd {
    const TASKS: Tasks = [
        "Stopping etcd of the epoch that has ended",
        "Waiting until etcd of the epoch that has ended has stopped",
    ];

    async fn sleep(f: &Facts) -> Result<()> {
        let api = f.etcds();
        let mut conflicts = ConflictLimit::default();
        loop {
            let found = api.get_opt(MAIN).await.context("could not read Etcd etcd-main")?;
            let runs = |found: &Etcd| is_of_earlier_epoch(found, f.epoch()) && found.spec.replicas > 0;
            let Some(found) = found.filter(runs) else {
                return Ok(());
            };
            // The patch is conditional on the version that was read: after a concurrent write, the loop reads
            // the Etcd again.
            let stops = json!({"spec": {"replicas": 0}});
            if FIELD_MANAGER.try_merge_of(&api, &found, &stops).await?.is_some() {
                return Ok(());
            }
            conflicts.count("Etcd", MAIN)?;
        }
    }

    async fn asleep(f: &Facts) -> Result<()> {
        let found = f.etcds().get_opt(MAIN).await;
        let found = found.context("could not read Etcd etcd-main")?;
        if !found.is_some_and(|found| is_of_earlier_epoch(&found, f.epoch())) {
            return Ok(());
        }
        let pods = f.seed.namespaced::<Pod>(&f.namespace);
        wait::until_gone(&pods, &member(), f.settings.timeouts.etcd.timeout).await
    }
}

/// Whether no etcd from an earlier residency of the shoot in this seed can run or start.
pub(crate) async fn has_ended(f: &Facts) -> Result<bool> {
    let etcd = f.etcds().get_opt(MAIN).await;
    let etcd = etcd.context("could not read Etcd etcd-main")?;
    let pods = f.seed.namespaced::<Pod>(&f.namespace);
    let pod = pods
        .get_opt(&member())
        .await
        .context("could not read the pod of etcd-main")?;
    let stopped = |etcd: &Etcd| etcd.spec.replicas <= 0 && is_of_earlier_epoch(etcd, f.epoch());
    Ok(pod.is_none() && etcd.as_ref().is_none_or(stopped))
}

fn is_of_earlier_epoch(etcd: &Etcd, epoch: i64) -> bool {
    etcd_owner::epoch_of(etcd).is_some_and(|own| own < epoch)
}

fn member() -> String {
    format!("{MAIN}-0")
}
