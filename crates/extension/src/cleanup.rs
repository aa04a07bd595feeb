//! Takes out of the source seed what an actuator has put there, and nothing of what has to be carried (RX-20,
//! RX-21, RX-23).
//!
//! For `migrate`. Everything here may be repeated, and touches nothing in the shoot and nothing outside.

use std::time::Duration;

use api::resources::ManagedResource;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, ResourceExt, api::ListParams};
use runtime::{
    Cluster, Result, Seed,
    apply::{self, FieldManager},
    error::Explain as _,
    wait,
};
use serde_json::json;

/// Label of a Secret that is carried to another seed and must not be made anew.
pub const PERSIST: (&str, &str) = ("persist", "true");
/// How long a ManagedResource may take to go: whoever looks after it has nothing to delete. Shorter than a
/// gardenlet's patience.
const GONE_WITHIN: Duration = Duration::from_secs(30);

/// Deletes the Secrets that a label selector finds, but none that is carried (RX-21).
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

/// Deletes ManagedResources and keeps the objects that they stand for: first all are told to keep them, then
/// they go (RX-23). They are awaited, so that nothing is left that somebody could act on.
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
