//! An object in a cluster, reduced to the fields that this crate reads.
//!
//! A user with write access in a shoot can create objects as large as the API server accepts, with any number
//! of parts. A part of three bytes takes a hundred bytes of memory. A single process keeps the objects of all
//! shoots of a seed. So unused fields are skipped, only some elements of lists are kept, and texts have a
//! bound ([`pick`]). A few hashes, computed during the read, show whether another writer has changed the
//! object ([`Marks`]).

mod digest;
mod listed;
mod marks;
mod pick;

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Resource,
    core::{ApiResource, DynamicResourceScope},
};
use runtime::bounds::Few;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use self::{
    listed::Listed,
    marks::Ours,
    pick::{Immutable, Spec, Status},
};
use crate::names::RESOURCES_ORIGIN;

pub use marks::Marks;

/// Maximum number of finalizers that are kept.
const FINALIZERS: usize = 50;

/// An object that is requested as a whole.
pub type Live = ReducedObject<true>;

/// An object, reduced to the used fields. `WHOLE`: the response has more than the metadata. For kinds without
/// a health check only the metadata are requested.
#[derive(Clone, Debug)]
pub struct ReducedObject<const WHOLE: bool> {
    /// The metadata that kube's client needs.
    meta: ObjectMeta,
    marks: Marks,
    value: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Wire {
    metadata: Meta,
    immutable: Immutable,
    spec: Spec,
    status: Status,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    deletion_timestamp: Option<String>,
    finalizers: Few<String, FINALIZERS>,
    labels: Listed,
    annotations: Listed,
    managed_fields: Ours,
}

impl<const WHOLE: bool> ReducedObject<WHOLE> {
    /// The kept fields, at the same paths as in the object.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The marks that show a change.
    #[must_use]
    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// The version of the object as a number, which rises with each write; 0 if the API server sends no
    /// number.
    #[must_use]
    pub fn version(&self) -> u64 {
        let version = self.meta.resource_version.as_deref();
        version
            .and_then(|version| version.parse().ok())
            .unwrap_or_default()
    }

    /// The ManagedResource in the origin annotation.
    #[must_use]
    pub fn origin(&self) -> Option<&str> {
        self.value["metadata"]["annotations"][RESOURCES_ORIGIN].as_str()
    }
}

impl<'de, const WHOLE: bool> Deserialize<'de> for ReducedObject<WHOLE> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Wire {
            metadata,
            immutable,
            spec,
            status,
        } = Wire::deserialize(deserializer)?;
        let marks = Marks::new(
            metadata.uid.as_deref(),
            metadata.managed_fields,
            [metadata.labels.digest, metadata.annotations.digest],
        );
        let meta = ObjectMeta {
            name: metadata.name,
            namespace: metadata.namespace,
            uid: metadata.uid,
            resource_version: metadata.resource_version,
            generation: metadata.generation,
            ..ObjectMeta::default()
        };
        // A missing field stays missing, because the presence of a field counts.
        let mut told = Map::new();
        for (field, value) in [
            ("name", json!(meta.name)),
            ("namespace", json!(meta.namespace)),
            ("uid", json!(meta.uid)),
            ("resourceVersion", json!(meta.resource_version)),
            ("generation", json!(meta.generation)),
            ("deletionTimestamp", json!(metadata.deletion_timestamp)),
            ("finalizers", json!(metadata.finalizers.first)),
            ("labels", json!(metadata.labels.first)),
            ("annotations", json!(metadata.annotations.first)),
        ] {
            if !value.is_null() {
                told.insert(field.to_owned(), value);
            }
        }
        let mut value = json!({"metadata": told, "spec": spec.0, "status": status.0});
        if immutable.0 {
            value["immutable"] = json!(true);
        }
        Ok(Self { meta, marks, value })
    }
}

/// The kind is known only by name.
impl<const WHOLE: bool> Resource for ReducedObject<WHOLE> {
    type DynamicType = ApiResource;
    type Scope = DynamicResourceScope;

    fn kind(of: &ApiResource) -> Cow<'_, str> {
        of.kind.as_str().into()
    }

    fn group(of: &ApiResource) -> Cow<'_, str> {
        of.group.as_str().into()
    }

    fn version(of: &ApiResource) -> Cow<'_, str> {
        of.version.as_str().into()
    }

    fn api_version(of: &ApiResource) -> Cow<'_, str> {
        of.api_version.as_str().into()
    }

    fn plural(of: &ApiResource) -> Cow<'_, str> {
        of.plural.as_str().into()
    }

    fn metadata_api() -> bool {
        !WHOLE
    }

    fn meta(&self) -> &ObjectMeta {
        &self.meta
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.meta
    }
}

#[cfg(test)]
mod tests;
