//! Removes the objects of an actuator from the source seed, but no object that has to be carried (RX-20,
//! RX-21, RX-23).
//!
//! For `migrate`. Every call may be repeated, and touches neither the shoot nor outside systems.

use std::time::Duration;

use api::resources::ManagedResource;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{
    Result,
    client::{
        Cluster, Seed,
        apply::{self, FieldManager},
        wait,
    },
    error::Explain as _,
};
use serde_json::json;

/// Label of a Secret that is carried to the destination seed and must not be generated again.
pub const PERSIST: (&str, &str) = ("persist", "true");
/// Timeout for the end of a ManagedResource. The resource-manager has no objects to delete, because the
/// objects are kept. Shorter than the timeout of a gardenlet.
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// Deletes the Secrets of a label selector, except carried Secrets (RX-21).
pub async fn secrets(seed: &Seed, namespace: &str, selector: &str) -> Result<()> {
    let (key, value) = PERSIST;
    let secrets: Api<Secret> = seed.namespaced(namespace);
    let ours = ListParams::default().labels(&format!("{selector},{key}!={value}"));
    let found = secrets.list(&ours).await;
    let found = found.context(format_args!("could not list the Secrets with {selector}"))?;
    for secret in found {
        apply::delete(&secrets, &secret.name_any()).await?;
    }
    Ok(())
}

/// Deletes ManagedResources and keeps their objects. First `keepObjects` is set on all, then all are deleted
/// (RX-23). The end of each is awaited, so that no ManagedResource is left for the resource-manager to act
/// on.
pub async fn managed_resources(seed: &Seed, by: FieldManager, namespace: &str, names: &[&str]) -> Result<()> {
    let resources: Api<ManagedResource> = seed.namespaced(namespace);
    let mut there = Vec::new();
    for name in names {
        let found = resources.get_opt(name).await;
        let found = found.context(format_args!("could not read ManagedResource {name}"))?;
        if let Some(found) = found.filter(|found| found.metadata.deletion_timestamp.is_none()) {
            let keep = json!({"spec": {"keepObjects": true}});
            by.merge(&resources, &found.name_any(), &keep).await?;
            there.push(found.name_any());
        }
    }
    for name in &there {
        apply::delete(&resources, name).await?;
    }
    for name in names {
        wait::until_gone(&resources, name, GONE_WITHIN).await?;
    }
    Ok(())
}
