//! Writes the cloud-controller-manager into the seed, and waits until exactly the pods that are wanted run.

use std::{collections::BTreeMap, time::Duration};

use api::extensions::ControlPlane;
use extension::Context;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret},
};
use kube::{Api, api::ListParams};
use runtime::{
    Cluster, Error, Result, Seed, apply,
    error::Explain as _,
    rollout::{Rollout, checksum},
    workload,
};

use super::cloud_controller_manager::{MIGRATION, NAME, SECRETS, deployment, migration_file};

/// How long one operation waits for the new pod. Longer than a pod takes whose image is there; much shorter than a gardenlet
/// waits for a ControlPlane, as whoever waits keeps others from working. After it, the object says what is awaited.
const ROLLED_OUT_WITHIN: Duration = Duration::from_secs(20);
/// When to look again for a Secret that a gardenlet is about to write.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Makes the cloud-controller-manager what the ControlPlane says. When it returns, the wanted pod serves, and every pod with flags
/// or files of before was told to stop. One whose node does not answer may still be there: it is not waited for, since it can do
/// nothing while another one has the main lock.
pub async fn roll_out(context: &Context<ControlPlane>, image: &str) -> Result<()> {
    let namespace = context.namespace()?;
    let wanted = context.object.spec.cloud_controller_manager.as_ref();
    let file = migration_file(wanted);
    let config_maps: Api<ConfigMap> = context.seed.namespaced(&namespace);
    let mut checksums = checksums_of_secrets(context, &namespace).await?;
    if let Some(file) = &file {
        checksums.insert(MIGRATION, checksum(file.data.iter().flatten()));
        context.manager.apply(&config_maps, file).await?;
    }
    let deployments: Api<Deployment> = context.seed.namespaced(&namespace);
    let made = deployment(image, &namespace, wanted, &checksums)?;
    let written = context
        .manager
        .apply(&deployments, &made)
        .await?
        .metadata
        .generation;
    of_it(&context.seed, &namespace)
        .wait_until_done(written, ROLLED_OUT_WITHIN)
        .await?;
    if file.is_none() {
        // Not before: a pod that needs it and is started again would not start.
        apply::delete(&config_maps, MIGRATION).await?;
    }
    Ok(())
}

async fn checksums_of_secrets(
    context: &Context<ControlPlane>,
    namespace: &str,
) -> Result<BTreeMap<&'static str, String>> {
    let secrets: Api<Secret> = context.seed.namespaced(namespace);
    let mut checksums = BTreeMap::new();
    for name in SECRETS {
        let found = secrets.get_opt(name).await;
        let secret = found
            .context(format_args!("could not read the Secret {name}"))?
            .ok_or_else(|| {
                Error::not_ready(
                    LOOK_AGAIN,
                    format!("the Secret {name} that {NAME} needs does not exist: the gardenlet writes it"),
                )
            })?;
        let data = secret.data.iter().flatten().map(|(key, value)| (key, &value.0));
        checksums.insert(name, checksum(data));
    }
    Ok(checksums)
}

/// Its Deployment and pods.
pub fn of_it(seed: &Seed, namespace: &str) -> Rollout<'static> {
    let labels: Vec<_> = workload::labels(NAME)
        .iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    Rollout::new(
        seed,
        namespace,
        NAME,
        ListParams::default().labels(&labels.join(",")),
    )
}
