//! From the objects in a shoot's namespace to the specification of its ShootState: pure, but for reading what extension
//! objects refer to.

use std::collections::BTreeMap;

use api::{
    constants::{TIMESTAMP, finalizer::SHOOT_STATE},
    gardencore::{ExtensionResourceState, Shoot, ShootState, ShootStateSpec},
    meta::{NamedResourceReference, RawExtension, ResourceData},
};
use k8s_openapi::{
    api::core::v1::{ConfigMap, Secret},
    apimachinery::pkg::apis::meta::v1::OwnerReference,
};
use kube::{Resource, ResourceExt};
use runtime::{Cluster, Error, Result, Seed};
use serde_json::Value;

/// Lays what is there now over what was collected before, so that a later, poorer look never loses anything.
pub(super) fn merge(
    before: Option<ShootStateSpec>,
    secrets: &[Secret],
    extensions: &[(String, Value)],
    referenced: Vec<ResourceData>,
) -> Result<ShootStateSpec> {
    let before = before.unwrap_or_default();
    let gardener = overlay(
        before.gardener,
        botanist::secrets::to_shoot_state(secrets)?,
        |data| (data.type_.clone(), data.name.clone()),
    );
    let states = extensions
        .iter()
        .filter_map(|(kind, object)| state_of(kind, object).transpose())
        .collect::<Result<_>>()?;
    let extensions = overlay(before.extensions, states, |state: &ExtensionResourceState| {
        (state.kind.clone(), state.name.clone(), state.purpose.clone())
    });
    let resources = overlay(before.resources, referenced, |data: &ResourceData| {
        (data.api_version.clone(), data.kind.clone(), data.name.clone())
    });
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
                ("v1", "Secret") => {
                    carried(seed.namespaced::<Secret>(namespace).get_opt(&target.name).await?)?
                }
                ("v1", "ConfigMap") => carried(
                    seed.namespaced::<ConfigMap>(namespace)
                        .get_opt(&target.name)
                        .await?,
                )?,
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

/// The object without what belongs to its cluster.
fn carried<K: serde::Serialize + ResourceExt>(object: Option<K>) -> Result<Option<RawExtension>> {
    let Some(mut object) = object else { return Ok(None) };
    let meta = object.meta_mut();
    *meta = kube::api::ObjectMeta {
        name: meta.name.take(),
        labels: meta.labels.take(),
        annotations: meta.annotations.take(),
        ..Default::default()
    };
    RawExtension::encode(&object)
        .map(Some)
        .map_err(|error| Error::bug(format!("an object does not encode: {error}")))
}

/// The ShootState object: owned by the Shoot, and held by a finalizer while a move is not finished (R7-21).
pub(super) fn object(shoot: &Shoot, spec: ShootStateSpec, now: &str) -> ShootState {
    let mut state = ShootState::new(&shoot.name_any(), spec);
    state.metadata.namespace = shoot.namespace();
    state.metadata.finalizers = Some(vec![SHOOT_STATE.to_owned()]);
    state.metadata.annotations = Some(BTreeMap::from([(TIMESTAMP.to_owned(), now.to_owned())]));
    state.metadata.owner_references = Some(vec![OwnerReference {
        api_version: Shoot::api_version(&()).into_owned(),
        kind: Shoot::kind(&()).into_owned(),
        name: shoot.name_any(),
        uid: shoot.uid().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }]);
    state
}
