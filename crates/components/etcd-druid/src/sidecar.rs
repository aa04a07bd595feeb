//! Reads the state of etcd-backup-restore: whether backups are taken, or the reason why not.
//!
//! etcd-druid sends the requests through the API server's proxy. That needs neither a route into the seed's
//! pod network nor the Secret with the certificate authority. Without an answer the state of the backups is
//! unknown, and etcd-druid does not change etcd for this reason.

use std::time::Duration;

use api::druid::{Etcd, ReportedOwnerCheck};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use ownership::Silence;
use runtime::client::{Cluster, Seed};
use serde::de::DeserializeOwned;
use sidecar_protocol::{SidecarHealth, SidecarOwnership};

use crate::{
    containers::statuses,
    names::{BACKUP_CONTAINER, BACKUP_PORT, ETCD_CONTAINER},
};

/// Timeout of a request. Longer than an answer from memory takes through a busy API server, shorter than the
/// status of an Etcd may be delayed.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// How the process checks the owner, for the status of the Etcd. `None` where the process does not report
/// servers, or has not found servers yet.
#[must_use]
pub fn reported_check(ownership: &SidecarOwnership) -> Option<ReportedOwnerCheck> {
    let servers_named = ownership
        .servers_named
        .filter(|_| !ownership.servers.is_empty())?;
    let seconds = |milliseconds: u64| i64::try_from(milliseconds.div_ceil(1000)).ok();
    Some(ReportedOwnerCheck {
        servers: ownership.servers.clone(),
        servers_named,
        least_fence_seconds: ownership.least_fence_milliseconds.and_then(seconds),
        host_clock: ownership.host_clock.clone(),
    })
}

/// The settings of the running process: whether silence ends the permit, and the shortest time that a
/// destination must wait. `None` if the process does not report these settings.
#[must_use]
pub fn reported_fence(ownership: &SidecarOwnership) -> Option<(bool, Duration)> {
    // An unknown value may have any meaning.
    let ends = ownership.silence.as_deref()? == Silence::Deactivate.as_str();
    Some((ends, Duration::from_millis(ownership.least_fence_milliseconds?)))
}

/// Asks the sidecar of the running member for its state and for the ownership of the shoot. `None` if no
/// sidecar can be expected to answer, or no sidecar answered.
pub async fn ask(
    seed: &Seed,
    etcd: &Etcd,
    members: &[Pod],
) -> (Option<SidecarHealth>, Option<SidecarOwnership>) {
    let of_itself = async {
        let pod = members.iter().find(|pod| runs(pod))?;
        get(seed, etcd, pod, "healthz").await
    };
    let (said, ownership) = tokio::join!(of_itself, ask_ownership(seed, etcd, members));
    // A sidecar that keeps clients away for ever is not ready, and reports the progress of the final
    // snapshot.
    let fenced = members.iter().find(|pod| answers(pod));
    let said = match (said, &ownership, fenced) {
        (None, Some(ownership), Some(pod)) if ownership.is_lost() => get(seed, etcd, pod, "healthz").await,
        (said, ..) => said,
    };
    (said, ownership)
}

/// The pod is not ready while the sidecar keeps clients away.
async fn ask_ownership(seed: &Seed, etcd: &Etcd, members: &[Pod]) -> Option<SidecarOwnership> {
    etcd.spec.backup.owner_check.as_ref()?;
    let pod = members.iter().find(|pod| answers(pod))?;
    let ownership: SidecarOwnership = get(seed, etcd, pod, "ownership").await?;
    // An answer without a state says nothing about etcd.
    ownership.state.is_some().then_some(ownership)
}

async fn get<T: DeserializeOwned>(seed: &Seed, etcd: &Etcd, pod: &Pod, what: &str) -> Option<T> {
    let backup = &etcd.spec.backup;
    if backup.store.is_none() || backup.source_store.is_some() {
        return None;
    }
    let (namespace, name, port) = (
        pod.namespace()?,
        pod.name_any(),
        backup.port.unwrap_or(BACKUP_PORT),
    );
    let path = format!("/api/v1/namespaces/{namespace}/pods/https:{name}:{port}/proxy/{what}");
    let request = http::Request::get(path).body(Vec::new()).ok()?;
    let answer = tokio::time::timeout(ANSWER_WITHIN, seed.client().request(request))
        .await
        .ok()?;
    answer
        .inspect_err(|error| tracing::debug!(%error, pod = name, "backup-restore did not answer"))
        .ok()
}

/// Whether the sidecar of the pod runs, ready or not.
fn answers(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
        && statuses(pod).any(|status| {
            let state = status.state.as_ref();
            status.name == BACKUP_CONTAINER && state.is_some_and(|state| state.running.is_some())
        })
}

/// Whether both containers are ready. Before etcd is ready, the sidecar can only report that etcd is missing.
fn runs(pod: &Pod) -> bool {
    let ready = |name: &str| statuses(pod).any(|status| status.name == name && status.ready);
    pod.metadata.deletion_timestamp.is_none() && ready(ETCD_CONTAINER) && ready(BACKUP_CONTAINER)
}

#[cfg(test)]
#[path = "sidecar_tests.rs"]
mod tests;
