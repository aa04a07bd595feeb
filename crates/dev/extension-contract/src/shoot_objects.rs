//! A fake resource-manager, with a fake shoot that holds the content of ManagedResources. The real
//! resource-manager has separate tests; these tests check only the requests of an actuator.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use api::resources::ManagedResource;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::{
    Api, Client, ResourceExt,
    api::{Patch, PatchParams},
    runtime::{WatchStreamExt, watcher},
};
use runtime::workload::rollout::checksum;
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// Keeps a ManagedResource until the objects are handled.
const FINALIZER: &str = "test/resource-manager";

/// The content of the shoot, by ManagedResource: the checksum of the content.
#[derive(Clone, Default)]
pub struct ShootObjects(Arc<Mutex<BTreeMap<String, String>>>);

impl ShootObjects {
    /// The present content.
    #[must_use]
    pub fn list_objects(&self) -> Value {
        json!(*self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Applies the ManagedResources of a shoot's namespace in a seed, until the value is dropped.
    #[must_use]
    pub fn kept_by(&self, seed: &Client, namespace: &str) -> JoinSet<()> {
        let (shoot, seed) = (self.clone(), seed.clone());
        let resources = Api::<ManagedResource>::namespaced(seed.clone(), namespace);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let changes = watcher(resources, watcher::Config::default())
                .default_backoff()
                .touched_objects();
            changes
                .for_each(|change| async {
                    if let Ok(resource) = change
                        && let Err(error) = shoot.keep(&seed, &resource).await
                    {
                        tracing::debug!(%error, "it has changed since");
                    }
                })
                .await;
        });
        tasks
    }

    async fn keep(&self, seed: &Client, resource: &ManagedResource) -> Result<()> {
        let (name, namespace) = (resource.name_any(), resource.namespace().unwrap_or_default());
        let api: Api<ManagedResource> = Api::namespaced(seed.clone(), &namespace);
        let params = PatchParams::default();
        let finalizers =
            |list: Value| Patch::Merge(json!({"metadata": {"uid": resource.uid(), "finalizers": list}}));
        if resource.metadata.deletion_timestamp.is_some() {
            if resource.spec.keep_objects != Some(true) {
                self.0
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .remove(&name);
            }
            if !resource.finalizers().is_empty() {
                api.patch(&name, &params, &finalizers(json!([]))).await?;
            }
            return Ok(());
        }
        if resource.finalizers().is_empty() {
            api.patch(&name, &params, &finalizers(json!([FINALIZER]))).await?;
        }
        let secrets: Api<Secret> = Api::namespaced(seed.clone(), &namespace);
        let mut all = BTreeMap::new();
        for secret in &resource.spec.secret_refs {
            for (key, bytes) in secrets.get(&secret.name).await?.data.unwrap_or_default() {
                all.insert(format!("{}/{key}", secret.name), bytes.0);
            }
        }
        let sum = checksum(&all);
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.clone(), sum.clone());
        let time = "2026-01-01T00:00:00Z";
        let status = json!({"observedGeneration": resource.metadata.generation, "secretsDataChecksum": sum, "conditions": [{
            "type": "ResourcesApplied", "status": "True", "reason": "Played", "message": "", "lastTransitionTime": time,
            "lastUpdateTime": time,
        }]});
        let status = Patch::Merge(json!({"metadata": {"uid": resource.uid()}, "status": status}));
        api.patch_status(&name, &params, &status).await?;
        Ok(())
    }
}
