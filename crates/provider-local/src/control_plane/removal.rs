//! Takes the cloud-controller-manager out of the seed, and waits until no pod of it is left: one that still runs would write
//! into the cloud although another seed owns the shoot by then (I3).

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use runtime::{Cluster, Result, Seed, apply};

use super::rollout::of_it;

/// How long one operation waits for a pod to end. Longer than the pod's time to stop; shorter than the patience of a forced
/// deletion, so that this can tell what is left.
const GONE_WITHIN: Duration = Duration::from_secs(17);

/// Removes all that the ControlPlane has put into a namespace: the cloud-controller-manager and these ConfigMaps. Everything is asked to go before anything is awaited: a pod whose
/// node does not answer holds up nothing else.
pub async fn remove(seed: &Seed, namespace: &str, config_maps: &[&str]) -> Result<()> {
    let it = of_it(seed, namespace);
    it.delete().await?;
    let there: Api<ConfigMap> = seed.namespaced(namespace);
    for name in config_maps {
        apply::delete(&there, name).await?;
    }
    it.wait_until_gone(GONE_WITHIN).await
}
