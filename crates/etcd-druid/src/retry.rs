//! Starts afresh what failed several times, so that a move goes on soon after the cause is gone.
//!
//! The kubelet waits up to five minutes between two starts of a failing container, and knows nothing of a credential that
//! was mended meanwhile. A pod that is made anew starts at once. What the failed ones said stays in `status.lastErrors`.

use api::druid::Etcd;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use runtime::{Cluster, Result, Seed, apply::delete_exactly};

use crate::{
    containers::statuses,
    names::{BACKUP_CONTAINER, INITIALIZE_CONTAINER},
    observed::Observed,
};

/// Starts of one container that may fail before its pod is replaced: after the third the kubelet has waited 10 s and
/// 20 s and would wait 40 s, 80 s, … next. Fewer would replace pods for a short hiccup of the object store.
const STARTS: i32 = 3;

/// Replaces pods whose initialization, and Jobs whose copy, is held back by the kubelet. Says whether it did.
pub async fn start_afresh(seed: &Seed, etcd: &Etcd, observed: &Observed) -> Result<bool> {
    let namespace = etcd.namespace().unwrap_or_default();
    let mut replaced = false;
    for pod in observed
        .members
        .iter()
        .filter(|pod| is_held_back(pod, INITIALIZE_CONTAINER))
    {
        tracing::info!(
            pod = pod.name_any(),
            "replaced, as its initialization failed several times"
        );
        delete_exactly(&seed.namespaced(&namespace), pod).await?;
        replaced = true;
    }
    if let Some(job) = &observed.job
        && observed
            .copies
            .iter()
            .any(|pod| is_held_back(pod, BACKUP_CONTAINER))
    {
        tracing::info!(job = job.name_any(), "replaced, as the copy failed several times");
        delete_exactly(&seed.namespaced(&namespace), job).await?;
        replaced = true;
    }
    Ok(replaced)
}

fn is_held_back(pod: &Pod, container: &str) -> bool {
    pod.metadata.deletion_timestamp.is_none()
        && statuses(pod).any(|status| {
            let waiting = status.state.as_ref().and_then(|state| state.waiting.as_ref());
            status.name == container
                && status.restart_count >= STARTS
                && waiting.and_then(|waiting| waiting.reason.as_deref()) == Some("CrashLoopBackOff")
        })
}
