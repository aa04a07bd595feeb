//! Writes the cloud-controller-manager into the seed, and waits until exactly the pods that are wanted run: none where the shoot
//! sleeps.

use std::time::Duration;

use api::extensions::ControlPlane;
use extension::Context;
use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::Api;
use owner_checks::OwnerClaim;
use runtime::{
    Cluster, Result, Seed, apply,
    error::Explain as _,
    rollout::{Rollout, checksum, checksums_of_secrets},
    workload,
};

use super::cloud_controller_manager::{
    MIGRATION, NAME, SECRETS, Settings, Wanted, deployment, migration_file,
};

/// The Deployment that serves the shoot's API, which a gardenlet makes.
const KUBE_APISERVER: &str = "kube-apiserver";
/// How long one operation waits for the new pod. Longer than a pod takes whose image is there; much shorter than a gardenlet
/// waits for a ControlPlane, as whoever waits keeps others from working. After it, the object says what is awaited.
const ROLLED_OUT_WITHIN: Duration = Duration::from_secs(20);

/// Makes the cloud-controller-manager what the ControlPlane says. When it returns, the wanted pod serves, and every pod with flags
/// or files of before was told to stop. One whose node does not answer may still be there: it is not waited for, since it can do
/// nothing while another one has the main lock.
pub async fn roll_out(context: &Context<ControlPlane>, settings: &Settings) -> Result<()> {
    let namespace = context.namespace()?;
    let wanted = context.object.spec.cloud_controller_manager.as_ref();
    let file = migration_file(wanted);
    let config_maps: Api<ConfigMap> = context.seed.namespaced(&namespace);
    let mut checksums = checksums_of_secrets(&context.seed, &namespace, NAME, &SECRETS).await?;
    if let Some(file) = &file {
        checksums.insert(MIGRATION, checksum(file.data.iter().flatten()));
        context.manager.apply(&config_maps, file).await?;
    }
    let deployments: Api<Deployment> = context.seed.namespaced(&namespace);
    let asks = context.cluster.as_ref().map_or(Ok(None), OwnerClaim::of)?;
    let all = Wanted {
        cluster: &namespace,
        spec: wanted,
        owner: asks.as_ref(),
    };
    let mut made = deployment(settings, all, &checksums)?;
    let sleeps = context.is_hibernated() && !is_api_wanted(&deployments).await?;
    if let Some(spec) = made.spec.as_mut().filter(|_| sleeps) {
        spec.replicas = Some(0);
    }
    let written = context
        .manager
        .apply(&deployments, &made)
        .await?
        .metadata
        .generation;
    let it = of_it(&context.seed, &namespace);
    it.wait_until_done(written, ROLLED_OUT_WITHIN).await?;
    if sleeps {
        it.wait_until_stopped(ROLLED_OUT_WITHIN).await?;
    }
    if file.is_none() {
        // Not before: a pod that needs it and is started again would not start.
        apply::delete(&config_maps, MIGRATION).await?;
    }
    Ok(())
}

/// Of a shoot that is to sleep it runs for as long as there is an API: machines are still going.
async fn is_api_wanted(deployments: &Api<Deployment>) -> Result<bool> {
    let found = deployments.get_opt(KUBE_APISERVER).await;
    let found = found.context(format_args!("could not read Deployment {KUBE_APISERVER}"))?;
    Ok(found.is_some_and(|found| found.spec.and_then(|spec| spec.replicas) != Some(0)))
}

/// Its Deployment and pods.
pub fn of_it(seed: &Seed, namespace: &str) -> Rollout<'static> {
    Rollout::new(seed, namespace, NAME, workload::selected(NAME))
}
