//! Takes the cloud-controller-manager out of the seed, and waits until no pod of it is left: one that still runs would write
//! into the cloud although another seed owns the shoot by then (I3).

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Pod},
};
use kube::{Api, ResourceExt};
use runtime::{Cluster, Result, Seed, apply, error::Context, wait};

use super::{
    CLOUD_PROVIDER_CONFIG,
    cloud_controller_manager::{MIGRATION, NAME},
    rollout::of_it,
};

/// How long one operation waits for a pod to end. Longer than the pod's time to stop; shorter than the patience of a forced
/// deletion, so that this can tell what is left.
const GONE_WITHIN: Duration = Duration::from_secs(17);

/// Removes all that the ControlPlane has put into a namespace. Everything is asked to go before anything is awaited: a pod whose
/// node does not answer holds up nothing else.
pub async fn remove(seed: &Seed, namespace: &str) -> Result<()> {
    let deployments: Api<Deployment> = seed.namespaced(namespace);
    let found = deployments
        .get_opt(NAME)
        .await
        .context("could not read the cloud-controller-manager")?;
    if let Some(found) = found {
        apply::delete_exactly(&deployments, &found).await?;
    }
    let config_maps: Api<ConfigMap> = seed.namespaced(namespace);
    for name in [MIGRATION, CLOUD_PROVIDER_CONFIG] {
        apply::delete(&config_maps, name).await?;
    }
    wait::until_gone(&deployments, NAME, GONE_WITHIN).await?;
    // Its pods go before it, unless somebody has deleted it in another way.
    let pods: Api<Pod> = seed.namespaced(namespace);
    let left = pods
        .list(&of_it())
        .await
        .context("could not list the pods of the cloud-controller-manager")?;
    for pod in left {
        wait::until_gone(&pods, &pod.name_any(), GONE_WITHIN).await?;
    }
    Ok(())
}
