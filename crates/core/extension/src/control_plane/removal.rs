//! Removes processes and files from the seed, and waits until no pod is left. A running pod would write into
//! the cloud although the destination seed owns the shoot by then (I3).

use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use runtime::{
    Result,
    client::{Cluster, Seed, apply},
    workload::{self, rollout::Rollout},
};

/// Time in which an operation waits for the end of a pod. Longer than the grace period of a pod, and shorter
/// than the patience of a forced deletion. So the deletion can report the remaining pod.
const GONE_WITHIN: Duration = Duration::from_secs(17);

/// The names of objects to remove.
#[derive(Clone, Copy)]
pub struct Names<'n> {
    pub processes: &'n [&'n str],
    pub config_maps: &'n [&'n str],
    pub secrets: &'n [&'n str],
}

/// All deletions are requested before the first wait: a pod whose node does not answer holds up no further
/// deletion.
pub async fn remove(seed: &Seed, namespace: &str, names: Names<'_>) -> Result<()> {
    for name in names.processes {
        of_it(seed, namespace, name).delete().await?;
    }
    let there: Api<ConfigMap> = seed.namespaced(namespace);
    for name in names.config_maps {
        apply::delete(&there, name).await?;
    }
    let secrets: Api<Secret> = seed.namespaced(namespace);
    for name in names.secrets {
        apply::delete(&secrets, name).await?;
    }
    let gone = names.processes.iter().map(|name| async move {
        let it = of_it(seed, namespace, name);
        it.wait_until_gone(GONE_WITHIN).await
    });
    try_join_all(gone).await.map(drop)
}

/// A process's Deployment and pods.
pub(super) fn of_it<'n>(seed: &Seed, namespace: &str, name: &'n str) -> Rollout<'n> {
    Rollout::new(seed, namespace, name, workload::selected(name))
}
