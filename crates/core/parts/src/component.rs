//! Common parts of all control plane processes that run as Deployments, and the waits for these Deployments.
//!
//! A change of a mounted object replaces the pod: a checksum of each mounted object is an annotation of the
//! pod.

use std::collections::BTreeMap;

use k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap};
use kube::Api;
use runtime::{
    Result,
    client::Cluster,
    error::Explain,
    workload::{Files, Health, Workload, mounted, rollout},
};
use serde_json::json;

use crate::{FIELD_MANAGER, Residency};

/// A process that works through the shoot's API and serves no clients. There is a single pod, because the
/// process leads alone, and the pod may stop at once. The Secret with the kubeconfig has the name of the
/// process.
pub(crate) fn client_of_api(name: &'static str, image: String, health: Health) -> Workload {
    Workload {
        name,
        image,
        program: program(name),
        args: vec![
            format!("--kubeconfig={}", mounted(name, "kubeconfig")),
            "--leader-elect=true".into(),
            "--profiling=false".into(),
        ],
        health,
        files: vec![Files::Secret(name)],
        scratch: true,
        grace_seconds: 5,
        overlaps: false,
        requests: ["64Mi", "10m"],
    }
}

/// Path of a Kubernetes program in the image.
pub(crate) fn program(name: &str) -> String {
    format!("/usr/local/bin/{name}")
}

/// Writes the Deployment of a process.
pub(crate) async fn deploy(residency: &Residency, component: &Workload) -> Result<()> {
    write(residency, component, 1).await
}

/// Stops a process, and keeps all further fields of the Deployment. A missing Deployment is created with zero
/// replicas: the Deployment shows that the shoot has this process.
pub(crate) async fn stop(residency: &Residency, component: &Workload) -> Result<()> {
    let api: Api<Deployment> = residency.seed.namespaced(&residency.namespace);
    let found = api.get_opt(component.name).await;
    let found = found.context(format_args!("could not read Deployment {}", component.name))?;
    if found.is_none() {
        return write(residency, component, 0).await;
    }
    let stopped = json!({"spec": {"replicas": 0}});
    FIELD_MANAGER
        .merge(&api, component.name, &stopped)
        .await
        .map(|_| ())
}

async fn write(residency: &Residency, component: &Workload, replicas: i32) -> Result<()> {
    let mut checksums = BTreeMap::new();
    for files in &component.files {
        let (kind, checksum) = match *files {
            Files::Secret(name) | Files::Authority(name) => {
                ("secret", rollout::checksum(&residency.secret_data(name).await?))
            }
            Files::ConfigMap(name) => ("configmap", checksum_of_config_map(residency, name).await?),
        };
        checksums.insert(format!("checksum/{kind}-{}", files.name()), checksum);
    }
    let api: Api<Deployment> = residency.seed.namespaced(&residency.namespace);
    let mut deployment = component.deployment(&checksums)?;
    deployment.metadata.namespace = Some(residency.namespace.clone());
    if let Some(spec) = &mut deployment.spec {
        spec.replicas = Some(replicas);
    }
    FIELD_MANAGER.apply(&api, &deployment).await.map(|_| ())
}

async fn checksum_of_config_map(residency: &Residency, name: &str) -> Result<String> {
    let api: Api<ConfigMap> = residency.seed.namespaced(&residency.namespace);
    let found = api
        .get_opt(name)
        .await
        .context(format_args!("could not read ConfigMap {name}"))?;
    let data = found.and_then(|found| found.data).unwrap_or_default();
    Ok(rollout::checksum(&data))
}
