//! The objects that states of extensions refer to, in the form that a ShootState carries: without the
//! metadata of the cluster.

use api::meta::{RawExtension, ResourceData};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{ResourceExt, api::ObjectMeta};
use runtime::{Error, Result};
use serde::{Serialize, de::DeserializeOwned};

/// A decoded object of a ShootState.
#[derive(Clone, Debug)]
pub(crate) enum Referenced {
    Secret(Box<Secret>),
    ConfigMap(Box<ConfigMap>),
}

/// The carried content of an object: data, name, labels and annotations.
pub fn content<K: Serialize + ResourceExt>(mut object: K) -> Result<RawExtension> {
    let meta = object.meta_mut();
    *meta = ObjectMeta {
        name: meta.name.take(),
        labels: meta.labels.take(),
        annotations: meta.annotations.take(),
        ..ObjectMeta::default()
    };
    RawExtension::encode(&object).map_err(|error| Error::bug("an object does not encode").caused_by(error))
}

/// The object in a resource of a ShootState, or the reason for a refusal. The data must equal the output of
/// [`content`] to the byte, because no seed collects further fields (owners, finalizers, fields of other
/// kinds).
pub(crate) fn referenced(resource: &ResourceData) -> Result<Referenced, String> {
    match resource.kind.as_str() {
        "Secret" => decode(resource).map(|secret| Referenced::Secret(Box::new(secret))),
        "ConfigMap" => decode(resource).map(|map| Referenced::ConfigMap(Box::new(map))),
        _ => Err("only Secrets and ConfigMaps are carried".into()),
    }
}

fn decode<K>(resource: &ResourceData) -> Result<K, String>
where
    K: Clone + Serialize + DeserializeOwned + ResourceExt,
{
    // The decoder's error could quote key material.
    let object: K = resource
        .data
        .decode()
        .map_err(|_| format!("its content does not decode as a {}", resource.kind))?;
    if object.meta().name.as_deref() != Some(&resource.name) {
        return Err(format!(
            "its content is named {:?}",
            object.meta().name.as_deref().unwrap_or_default()
        ));
    }
    if content(object.clone()).ok().as_ref() != Some(&resource.data) || holds_text(&resource.data) {
        return Err("its content has more than a name, labels, annotations, data and a type".into());
    }
    Ok(object)
}

/// `stringData` is write-only: no API server returns this field, so the data cannot come from an API server.
fn holds_text(data: &RawExtension) -> bool {
    data.0.get("stringData").is_some()
}
