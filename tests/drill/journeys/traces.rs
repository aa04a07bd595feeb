//! The objects of a shoot in a seed that could act for the shoot.

use api::druid::Etcd;
use api::extensions::{ControlPlane, DNSRecord, ExtensionObject, Infrastructure};
use api::meta::{LastOperationState as State, LastOperationType as Type};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use runtime::Result;

use crate::foreign;
use crate::seed::RunningSeed;
use crate::sidecar::epoch_of;

/// Whether a Deployment, or a pod, of that name writes to a shoot.
pub fn writes(name: &str) -> bool {
    // Third-party processes with such names are no part of the control plane.
    if foreign::DEPLOYMENTS
        .iter()
        .any(|deployment| name.starts_with(deployment))
    {
        return false;
    }
    name.starts_with("kube-apiserver")
        || name.starts_with("kube-scheduler")
        || name.contains("controller-manager")
}

/// Whether the Deployment wants pods.
pub fn runs(deployment: &Deployment) -> bool {
    let replicas = deployment.spec.as_ref().and_then(|spec| spec.replicas);
    deployment.metadata.deletion_timestamp.is_none() && replicas != Some(0)
}

/// The Deployments and pods in this seed that write to the shoot.
pub async fn writers(seed: &RunningSeed, namespace: &str) -> Result<Vec<String>> {
    let all = ListParams::default();
    let deployments: Api<Deployment> = Api::namespaced(seed.client(), namespace);
    let pods: Api<Pod> = Api::namespaced(seed.client(), namespace);
    let deployments = deployments.list(&all).await?.items;
    let deployments = deployments.iter().filter(|found| runs(found));
    let deployments = deployments.map(|found| format!("Deployment {}", found.name_any()));
    let pods = pods.list(&all).await?.items.into_iter();
    let pods = pods.map(|found| format!("Pod {}", found.name_any()));
    let found = deployments.chain(pods);
    let is_writer = |found: &String| found.split(' ').nth(1).is_some_and(writes);
    Ok(found.filter(is_writer).collect())
}

/// The objects in this seed that act on outside resources of the shoot, and were not migrated.
pub async fn claims(seed: &RunningSeed, namespace: &str) -> Result<Vec<String>> {
    let mut found = held::<Infrastructure>(seed, namespace).await?;
    found.extend(held::<ControlPlane>(seed, namespace).await?);
    found.extend(held::<DNSRecord>(seed, namespace).await?);
    Ok(found)
}

async fn held<K>(seed: &RunningSeed, namespace: &str) -> Result<Vec<String>>
where
    K: ExtensionObject + kube::Resource<Scope = NamespaceResourceScope>,
{
    let api: Api<K> = Api::namespaced(seed.client(), namespace);
    let all = api.list(&ListParams::default()).await?.items;
    let is_held = |object: &&K| {
        let last = object
            .default_status()
            .and_then(|status| status.last_operation.as_ref());
        last.is_none_or(|last| last.type_ != Type::Migrate || last.state != State::Succeeded)
    };
    let held = all.iter().filter(is_held);
    Ok(held
        .map(|object| format!("{} {}", K::kind(&()), object.name_any()))
        .collect())
}

/// Whether the seed has an etcd whose backups continue.
pub async fn etcd_goes_on(seed: &RunningSeed, namespace: &str) -> Result<bool> {
    let etcds: Api<Etcd> = Api::namespaced(seed.client(), namespace);
    let found = etcds.get_opt("etcd-main").await?;
    Ok(found.is_some_and(|etcd| {
        let copies = etcd.spec.backup.source_store.is_some();
        !copies && !seed.sidecars.has_finished(namespace, epoch_of(&etcd))
    }))
}
