//! Objects of any kind from JSON.

use anyhow::{Context, Result};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
    core::{ApiResource, GroupVersionKind},
};
use serde_json::{Value, json};

/// Applies an object with type, name and namespace, and returns the written object.
///
/// # Errors
/// Type or name is missing, or the server refuses the object.
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

/// A Lease without a holder. Without a Lease, a candidate would wait for as long as a holder might exist.
///
/// # Errors
/// The server refuses the object.
pub async fn free_lock(client: &Client, namespace: &str, name: &str) -> Result<()> {
    let meta = json!({"name": name, "namespace": namespace});
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": meta});
    apply(client, lease).await.map(drop)
}
