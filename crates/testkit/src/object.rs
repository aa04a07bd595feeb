//! Objects of any kind, as tests write them.

use anyhow::{Context, Result};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

/// Applies an object that says what it is and where, and gives it as it is then.
///
/// # Errors
/// It does not say so, or the server refuses it.
pub async fn apply(client: &Client, object: Value) -> Result<DynamicObject> {
    let object: DynamicObject = serde_json::from_value(object)?;
    let types = object.types.clone().context("a type")?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(&types)?);
    let name = object.metadata.name.clone().context("a name")?;
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    Ok(api
        .patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(&object))
        .await?)
}

/// A lock that nobody has. A candidate that finds none at all waits for as long as somebody might still hold
/// it.
///
/// # Errors
/// The server refuses it.
pub async fn free_lock(client: &Client, namespace: &str, name: &str) -> Result<()> {
    let meta = json!({"name": name, "namespace": namespace});
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta});
    apply(client, lease).await.map(drop)
}
