//! Replaces pods and Jobs that failed several times, so that a move continues soon after the cause is fixed.
//!
//! The kubelet waits up to five minutes between two starts of a failing container, and does not know that a
//! credential was fixed meanwhile. A new pod starts at once. The errors of the failed pods stay in
//! `status.lastErrors`.
//!
//! The kubelet also does not know that etcd was terminated because no witness confirmed its seed (R17-41).
//! After several such terminations etcd must start at once when its seed is confirmed (R17-48), and the final
//! snapshot needs etcd.

use api::druid::Etcd;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::ResourceExt;
use runtime::{
    Result,
    client::{Cluster, Seed, apply::delete_exactly},
};

use crate::{
    containers::statuses,
    names::{BACKUP_CONTAINER, ETCD_CONTAINER, INITIALIZE_CONTAINER},
    observed::Observed,
    status::fenced_etcd::was_told_to_end,
};

/// Failed starts of a container before its pod is replaced. After the third start the kubelet has waited 10 s
/// and 20 s and would wait 40 s, 80 s, … next. A smaller number would replace pods for a short failure of the
/// object store.
const STARTS: i32 = 3;

/// Replaces pods with a held-back initialization, pods with a held-back etcd that was only terminated, and
/// Jobs with a held-back copy. "Held back" means that the kubelet delays the next start. Returns whether an
/// object was replaced.
pub async fn start_afresh(seed: &Seed, etcd: &Etcd, observed: &Observed) -> Result<bool> {
    let namespace = etcd.namespace().unwrap_or_default();
    let mut replaced = false;
    for pod in &observed.members {
        let why = if is_held_back(pod, INITIALIZE_CONTAINER) {
            "its initialization failed several times"
        } else if etcd.spec.backup.owner_check.is_some() && is_told_etcd_held_back(pod) {
            "etcd was told to end several times, as its seed was not confirmed"
        } else {
            continue;
        };
        tracing::info!(pod = pod.name_any(), why, "replaced");
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

/// Whether an etcd is held back whose last exit was a requested termination. An etcd that fails by itself is
/// left to the kubelet.
fn is_told_etcd_held_back(pod: &Pod) -> bool {
    let told = |status: &ContainerStatus| status.name == ETCD_CONTAINER && was_told_to_end(status);
    is_held_back(pod, ETCD_CONTAINER) && statuses(pod).any(told)
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn pod(container: &str, restarts: i32, waits_for: &str, exit_code: i32) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "etcd-main-0"}, "status": {"containerStatuses": [
            {"name": "backup-restore", "image": "", "imageID": "", "ready": true, "restartCount": 9, "state": {"running": {}}},
            {"name": container, "image": "", "imageID": "", "ready": false, "restartCount": restarts,
             "state": {"waiting": {"reason": waits_for}}, "lastState": {"terminated": {"exitCode": exit_code}}},
        ]}}))
        .unwrap()
    }

    /// R17-48: the kubelet delays for up to five minutes an etcd that only followed its SIGTERM.
    #[test]
    fn an_etcd_that_was_told_to_end_several_times_is_started_at_once() {
        for (container, restarts, waits_for, exit_code, expected) in [
            ("etcd", 3, "CrashLoopBackOff", 143, true),
            ("etcd", 7, "CrashLoopBackOff", 143, true),
            ("etcd", 2, "CrashLoopBackOff", 143, false),
            ("etcd", 3, "ContainerCreating", 143, false),
            // etcd failed by itself: a new pod would not help.
            ("etcd", 3, "CrashLoopBackOff", 1, false),
            ("initialize", 3, "CrashLoopBackOff", 143, false),
        ] {
            let pod = pod(container, restarts, waits_for, exit_code);
            assert_eq!(
                is_told_etcd_held_back(&pod),
                expected,
                "{container} {restarts} {exit_code}"
            );
        }
        let mut going = pod("etcd", 3, "CrashLoopBackOff", 143);
        going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        assert!(!is_told_etcd_held_back(&going));
    }
}
