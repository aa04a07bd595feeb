//! Development only: fake hosts of the local cloud. Each host confirms an order at once, like the agent after
//! the kernel has the rules.

use anyhow::Result;
use cloud_local::{Cloud, Host, isolation};
use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client,
    runtime::{WatchStreamExt, watcher},
};
use runtime::client::apply::FieldManager;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Runs fake hosts with these names until the set is dropped. `account`: the namespace of the cloud account;
/// `manager`: the field manager of the confirmations.
pub async fn run_hosts<const N: usize>(
    client: &Client,
    account: &str,
    manager: FieldManager,
    names: [&'static str; N],
) -> Result<JoinSet<()>> {
    let mut running = JoinSet::new();
    for name in names {
        let host = Host::new(Cloud::inside(client.clone(), account, manager), name);
        host.register().await?;
        let objects: Api<ConfigMap> = Api::namespaced(client.clone(), account);
        let marked = watcher::Config::default().labels(isolation::LABEL);
        let mut changes = Box::pin(watcher(objects, marked).default_backoff());
        running.spawn(async move {
            while changes.next().await.is_some() {
                // A failed confirmation is repeated at the next change.
                if let Err(error) = confirm(&host, name).await {
                    tracing::debug!(%error, name, "a played host");
                }
            }
        });
    }
    Ok(running)
}

async fn confirm(host: &Host, name: &str) -> runtime::Result<()> {
    for order in host.orders().await? {
        if !order.is_done_by(name) {
            host.confirm(&order).await?;
        }
    }
    Ok(())
}

/// The closed zone of a cluster, without the confirmations of hosts.
pub async fn closed_zone(client: &Client, account: &str, cluster: &str) -> Result<Value> {
    let objects: Api<ConfigMap> = Api::namespaced(client.clone(), account);
    let found = objects.get_opt(&isolation::name_of(cluster)).await?;
    let data = found.and_then(|object| object.data).unwrap_or_default();
    let told: Vec<_> = data
        .into_iter()
        .filter(|(key, _)| ["zone", "since", "wanted"].contains(&key.as_str()))
        .collect();
    Ok(json!(told))
}
