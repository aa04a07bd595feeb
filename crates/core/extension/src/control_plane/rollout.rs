//! Writes processes and their files into the seed, and waits until exactly the wanted pods run: none for a
//! hibernated shoot.

use std::{collections::BTreeMap, time::Duration};

use api::extensions::ControlPlane;
use futures::future::try_join_all;
use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{ConfigMap, Secret},
};
use kube::{Api, ResourceExt};
use runtime::{
    Result,
    client::Cluster,
    error::Explain as _,
    workload::{
        Files, Workload,
        rollout::{checksum, checksums_of_secrets},
    },
};

use super::{parts::Parts, removal::of_it};
use crate::Context;

/// The Deployment of the shoot's API server; a gardenlet writes the Deployment.
const KUBE_APISERVER: &str = "kube-apiserver";
/// Time in which an operation waits for new pods. Longer than a pod takes to start with a present image. Much
/// shorter than a gardenlet's timeout for a ControlPlane, because a waiting operation occupies a worker of
/// the controller. After the timeout, the object reports the awaited pods.
const ROLLED_OUT_WITHIN: Duration = Duration::from_secs(20);

/// On return, the wanted pods serve, and every pod with former flags or files is terminating. A terminating
/// pod on a node that does not answer may still exist. The rollout does not wait for such a pod, because a
/// process with leader election cannot act while the successor holds the lock.
pub async fn roll_out(context: &Context<ControlPlane>, parts: &Parts, secrets: &[Secret]) -> Result<()> {
    let namespace = &context.namespace()?;
    let written: Api<Secret> = context.seed.namespaced(namespace);
    for secret in secrets {
        context.manager.apply_secret(&written, secret).await?;
    }
    let config_maps: Api<ConfigMap> = context.seed.namespaced(namespace);
    for file in &parts.config_maps {
        context.manager.apply(&config_maps, file).await?;
    }
    let deployments: Api<Deployment> = context.seed.namespaced(namespace);
    let sleeps = context.is_hibernated() && !is_api_wanted(&deployments).await?;
    let mut written = Vec::new();
    for process in &parts.processes {
        let annotations = annotations(context, namespace, process, &parts.config_maps).await?;
        let mut wanted = process.deployment(&annotations)?;
        if let Some(spec) = wanted.spec.as_mut().filter(|_| sleeps) {
            spec.replicas = Some(0);
        }
        let is = context.manager.apply(&deployments, &wanted).await?;
        written.push((process.name, is.metadata.generation));
    }
    let done = written.into_iter().map(|(name, generation)| async move {
        let it = of_it(&context.seed, namespace, name);
        it.wait_until_done(generation, ROLLED_OUT_WITHIN).await?;
        if sleeps {
            it.wait_until_stopped(ROLLED_OUT_WITHIN).await?;
        }
        Ok(())
    });
    try_join_all(done).await.map(drop)
}

/// A checksum of each object that a process mounts.
async fn annotations(
    context: &Context<ControlPlane>,
    namespace: &str,
    process: &Workload,
    config_maps: &[ConfigMap],
) -> Result<BTreeMap<String, String>> {
    let secrets: Vec<_> = process.files.iter().filter_map(secret).collect();
    let secrets = checksums_of_secrets(&context.seed, namespace, process.name, &secrets).await?;
    let files = of_files(&process.files, config_maps);
    let all = secrets.into_iter().chain(files);
    Ok(all.map(|(name, sum)| (format!("checksum/{name}"), sum)).collect())
}

fn secret(files: &Files) -> Option<&'static str> {
    match files {
        Files::Secret(name) => Some(*name),
        // A process reloads a certificate; a ConfigMap is written here.
        Files::Authority(_) | Files::ConfigMap(_) => None,
    }
}

/// The checksums of mounted ConfigMaps.
pub(super) fn of_files(files: &[Files], config_maps: &[ConfigMap]) -> Vec<(&'static str, String)> {
    let mounted = files.iter().filter_map(|files| match files {
        Files::ConfigMap(name) => Some(*name),
        Files::Secret(_) | Files::Authority(_) => None,
    });
    let content = |name: &str| config_maps.iter().find(|map| map.name_any() == name);
    mounted
        .filter_map(|name| Some((name, checksum(content(name)?.data.iter().flatten()))))
        .collect()
}

/// For a shoot with hibernation, the processes run as long as the API server runs, because machines are still
/// being removed.
async fn is_api_wanted(deployments: &Api<Deployment>) -> Result<bool> {
    let found = deployments.get_opt(KUBE_APISERVER).await;
    let found = found.context(format_args!("could not read Deployment {KUBE_APISERVER}"))?;
    Ok(found.is_some_and(|found| found.spec.and_then(|spec| spec.replicas) != Some(0)))
}
