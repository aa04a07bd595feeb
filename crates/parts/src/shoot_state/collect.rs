//! From the objects in a shoot's namespace to the specification of its ShootState: pure, but for reading what extension
//! objects refer to. What a restore accepts is decided in [`super::carried`], for both.

use std::collections::BTreeMap;

use api::{
    gardencore::{ExtensionResourceState, ShootStateSpec},
    meta::{NamedResourceReference, RawExtension, ResourceData},
};
use k8s_openapi::{
    NamespaceResourceScope,
    api::core::v1::{ConfigMap, Secret},
};
use kube::Resource;
use runtime::{Cluster, Error, Result, Seed};
use serde_json::Value;

use super::{carried, content::content, entries::to_shoot_state};

/// Lays what is there now over what was collected before, so that a later, poorer look never loses anything.
pub(super) fn merge(
    before: ShootStateSpec,
    secrets: &[Secret],
    extensions: &[(String, Value)],
    referenced: Vec<ResourceData>,
) -> Result<ShootStateSpec> {
    let gardener = overlay(before.gardener, to_shoot_state(secrets)?, |data| {
        (data.type_.clone(), data.name.clone())
    });
    let states = extensions
        .iter()
        .filter_map(|(kind, object)| state_of(kind, object).transpose())
        .collect::<Result<_>>()?;
    let extensions = overlay(before.extensions, states, |state: &ExtensionResourceState| {
        (state.kind.clone(), state.name.clone(), state.purpose.clone())
    });
    let mut resources = overlay(before.resources, referenced, |data: &ResourceData| {
        (data.api_version.clone(), data.kind.clone(), data.name.clone())
    });
    // What a state referred to earlier and does not any more nobody would restore.
    resources.retain(|resource| carried::is_referred_to(&extensions, resource));
    Ok(ShootStateSpec {
        gardener,
        extensions,
        resources,
    })
}

/// The newer list wins for each key; the order is by key, so that equal content is an equal object.
fn overlay<T, K: Ord>(before: Vec<T>, now: Vec<T>, key: impl Fn(&T) -> K) -> Vec<T> {
    let mut all: BTreeMap<K, T> = before.into_iter().map(|item| (key(&item), item)).collect();
    all.extend(now.into_iter().map(|item| (key(&item), item)));
    all.into_values().collect()
}

/// An extension object's state, if it has any. State and references are opaque (R7-24).
fn state_of(kind: &str, object: &Value) -> Result<Option<ExtensionResourceState>> {
    let status = &object["status"];
    let resources = references(kind, object)?;
    let state = Some(&status["state"])
        .filter(|state| !state.is_null())
        .cloned()
        .map(RawExtension::from);
    if state.is_none() && resources.is_empty() {
        return Ok(None);
    }
    Ok(Some(ExtensionResourceState {
        kind: kind.to_owned(),
        name: object["metadata"]["name"].as_str().map(str::to_owned),
        purpose: object["spec"]["purpose"].as_str().map(str::to_owned),
        state,
        resources,
    }))
}

fn references(kind: &str, object: &Value) -> Result<Vec<NamedResourceReference>> {
    let resources = &object["status"]["resources"];
    if resources.is_null() {
        return Ok(Vec::new());
    }
    serde_json::from_value(resources.clone()).map_err(|error| {
        Error::bug(format!(
            "status.resources of {kind} {} does not decode: {error}",
            object["metadata"]["name"]
        ))
    })
}

/// Reads the objects that extension objects refer to (RX-33). One that is missing is an error: the destination could not
/// restore without it.
pub(super) async fn referenced(
    seed: &Seed,
    namespace: &str,
    extensions: &[(String, Value)],
) -> Result<Vec<ResourceData>> {
    let mut found = Vec::new();
    for (kind, object) in extensions {
        for reference in references(kind, object)? {
            let target = reference.resource_ref;
            let data = match (
                target.api_version.as_deref().unwrap_or("v1"),
                target.kind.as_str(),
            ) {
                ("v1", "Secret") => read::<Secret>(seed, namespace, &target.name).await?,
                ("v1", "ConfigMap") => read::<ConfigMap>(seed, namespace, &target.name).await?,
                (version, other) => {
                    return Err(Error::bug(format!(
                        "{kind} refers to a {version} {other}; only Secrets and ConfigMaps can be carried to another seed"
                    )));
                }
            };
            let data = data.ok_or_else(|| {
                Error::transient(format!(
                    "{kind} {} refers to {} {} which does not exist; its controller must create it again or drop the reference",
                    object["metadata"]["name"], target.kind, target.name
                ))
            })?;
            found.push(ResourceData {
                api_version: target.api_version,
                kind: target.kind,
                name: target.name,
                data,
            });
        }
    }
    Ok(found)
}

async fn read<K>(seed: &Seed, namespace: &str, name: &str) -> Result<Option<RawExtension>>
where
    K: runtime::apply::Object + Resource<Scope = NamespaceResourceScope>,
{
    let found = seed.namespaced::<K>(namespace).get_opt(name).await?;
    found.map(content).transpose()
}
