//! Reads the inputs of all conditions of a shoot.

use std::collections::BTreeMap;

use api::{druid::Etcd, gardencore::Shoot, resources::ManagedResource};
use k8s_openapi::{
    NamespaceResourceScope,
    api::{apps::v1::Deployment, core::v1::Pod},
};
use kube::{Api, Resource, ResourceExt, api::ListParams, core::Selector};
use runtime::{Result, client::Cluster, error::Explain as _, workload::rollout};

use super::{
    checks, extensions,
    inputs::CareInputs,
    probe::{self, Answer},
    webhooks,
};
use crate::Context;

/// Reads all objects.
pub(super) async fn read_inputs(context: &Context, shoot: &Shoot, namespace: &str) -> Result<CareInputs> {
    let seed = &context.seed;
    let uid = shoot.status.as_ref().map(|s| s.uid.as_str()).unwrap_or_default();
    let backup_entry = format!("{namespace}--{uid}");
    let (answer, deployments, etcds, extensions, resources) = futures::join!(
        probe::api_server(seed, &context.settings, namespace),
        list::<Deployment>(context, namespace),
        list::<Etcd>(context, namespace),
        extensions::reports(context, namespace, &backup_entry),
        list::<ManagedResource>(context, namespace),
    );
    let deployments = deployments?;
    let pod_reports = read_pod_reports(context, namespace, &deployments).await;
    let webhooks = match &answer {
        Answer::Ok(client) => webhooks::survey(client).await.ok(),
        _ => None,
    };
    let (api_error, api_not_asked, nodes) = match answer {
        Answer::Ok(_) if shoot.spec.provider.workers.is_empty() => (None, false, Ok(Vec::new())),
        Answer::Ok(client) => (None, false, probe::nodes(&client).await),
        Answer::No(why) => (
            Some(why),
            false,
            Err("the shoot's API is not available".to_owned()),
        ),
        Answer::NotAsked(why) => (
            Some(why),
            true,
            Err("the shoot's API is not available".to_owned()),
        ),
    };
    Ok(CareInputs {
        api_error,
        api_not_asked,
        nodes,
        webhooks,
        deployments,
        pod_reports,
        etcds: etcds?,
        extensions: extensions?,
        resources: resources?,
    })
}

/// The etcds alone.
pub(super) async fn etcds(context: &Context, namespace: &str) -> Result<Vec<Etcd>> {
    list::<Etcd>(context, namespace).await
}

/// The Deployments alone.
pub(super) async fn deployments(context: &Context, namespace: &str) -> Result<Vec<Deployment>> {
    list::<Deployment>(context, namespace).await
}

/// Reads the pods of Deployments with missing pods. The result only improves a message, so a failed read is
/// ignored.
async fn read_pod_reports(
    context: &Context,
    namespace: &str,
    deployments: &[Deployment],
) -> BTreeMap<String, String> {
    let pods: Api<Pod> = context.seed.namespaced(namespace);
    let mut pod_reports = BTreeMap::new();
    for deployment in deployments.iter().filter(|d| checks::lacks(d).is_some()) {
        let selector = deployment.spec.as_ref().map(|spec| spec.selector.clone());
        let Some(Ok(selector)) = selector.map(Selector::try_from) else {
            continue;
        };
        let selected = ListParams::default().labels_from(&selector);
        if let Some(words) = rollout::what_pods_say(&pods, &selected).await {
            pod_reports.insert(deployment.name_any(), words);
        }
    }
    pod_reports
}

async fn list<K>(context: &Context, namespace: &str) -> Result<Vec<K>>
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + std::fmt::Debug
        + serde::de::DeserializeOwned,
{
    let api: Api<K> = context.seed.namespaced(namespace);
    let list = api
        .list(&ListParams::default())
        .await
        .context(format_args!("could not list {}", K::plural(&())))?;
    Ok(list.items)
}
