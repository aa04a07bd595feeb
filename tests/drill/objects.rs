//! A fake resource-manager of a seed, for gardenlet and providers: the objects of a ManagedResource count as
//! applied at once. The objects are not really applied, because the shoots of the test share a single API.

use anyhow::Result;
use api::resources::ManagedResource;
use futures::StreamExt;
use futures::future::ready;
use futures::stream::select;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PartialObjectMeta;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use runtime::client::apply::FieldManager;
use runtime::workload::rollout::checksum;
use serde_json::json;
use tokio::task::JoinSet;

const BY: FieldManager = FieldManager("played-resource-manager");

/// Prefix of the Secret's name.
const OF_SECRET: &str = "managedresource-";

/// Acts on each change, until `tasks` is dropped.
pub fn play(tasks: &mut JoinSet<()>, seed: Client) {
    let resources: Api<ManagedResource> = Api::all(seed.clone());
    let secrets: Api<PartialObjectMeta<Secret>> = Api::all(seed.clone());
    let by_resources = watcher(resources, watcher::Config::default())
        .default_backoff()
        .touched_objects()
        .filter_map(|object| ready(object.ok().map(|object| (object.namespace(), object.name_any()))));
    let by_secrets = watcher(secrets, watcher::Config::default())
        .default_backoff()
        .touched_objects()
        .filter_map(|object| {
            let named = object.ok().and_then(|object| {
                let name = object.name_any().strip_prefix(OF_SECRET)?.to_owned();
                Some((object.namespace(), name))
            });
            ready(named)
        });
    let mut changed = select(by_resources.boxed(), by_secrets.boxed());
    tasks.spawn(async move {
        while let Some((namespace, name)) = changed.next().await {
            // A conflicting write is repeated at the next change.
            let _ = apply(&seed, &namespace.unwrap_or_default(), &name).await;
        }
    });
}

async fn apply(seed: &Client, namespace: &str, name: &str) -> Result<()> {
    let api: Api<ManagedResource> = Api::namespaced(seed.clone(), namespace);
    let Some(resource) = api.get_opt(name).await? else {
        return Ok(());
    };
    let secrets: Api<Secret> = Api::namespaced(seed.clone(), namespace);
    let mut content = Vec::new();
    for reference in &resource.spec.secret_refs {
        let data = secrets.get(&reference.name).await?.data.unwrap_or_default();
        let name = &reference.name;
        content.extend(
            data.into_iter()
                .map(|(key, bytes)| (format!("{name}/{key}"), bytes.0)),
        );
    }
    let now = "2026-01-01T00:00:00Z";
    let status = json!({
        "observedGeneration": resource.metadata.generation, "secretsDataChecksum": checksum(content),
        "conditions": [{
            "type": "ResourcesApplied", "status": "True", "reason": "ApplySucceeded", "message": "played",
            "lastTransitionTime": now, "lastUpdateTime": now,
        }],
    });
    if json!(resource.status) != status {
        BY.merge_status(&api, name, &status).await?;
    }
    Ok(())
}
