//! Takes processes and files out of the seed, and waits until no pod is left: one that still runs would write
//! into the cloud although another seed owns the shoot by then (I3).

use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use runtime::{Cluster, Result, Seed, apply, rollout::Rollout, workload};

/// How long one operation waits for a pod to end. Longer than a pod's time to stop; shorter than the patience
/// of a forced deletion, so that this can tell what is left.
const GONE_WITHIN: Duration = Duration::from_secs(17);

/// Everything is asked to go before anything is awaited: a pod whose node does not answer holds up nothing
/// else.
pub async fn remove(seed: &Seed, namespace: &str, processes: &[&str], config_maps: &[&str]) -> Result<()> {
    for name in processes {
        of_it(seed, namespace, name).delete().await?;
    }
    let there: Api<ConfigMap> = seed.namespaced(namespace);
    for name in config_maps {
        apply::delete(&there, name).await?;
    }
    let gone = processes.iter().map(|name| async move {
        let it = of_it(seed, namespace, name);
        it.wait_until_gone(GONE_WITHIN).await
    });
    try_join_all(gone).await.map(drop)
}

/// A process's Deployment and pods.
pub(super) fn of_it<'n>(seed: &Seed, namespace: &str, name: &'n str) -> Rollout<'n> {
    Rollout::new(seed, namespace, name, workload::selected(name))
}
