//! An object as it is in a cluster, as far as anything here looks at it.
//!
//! Whoever may write in a shoot makes objects as large as their API server takes them, out of as many parts
//! as he likes, and a part of three bytes takes a hundred in memory once it is read. One process keeps the
//! objects of all shoots of a seed. So what nothing here looks at is read over, of lists only some elements
//! are kept, and texts have a bound ([`pick`]). Whether somebody has changed the object is told by a few
//! numbers that are made while it is read ([`Marks`]).

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
use runtime::Few;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use self::{
    listed::Listed,
    marks::Ours,
    pick::{Immutable, Spec, Status},
};
use crate::names::RESOURCES_ORIGIN;

pub use marks::Marks;

/// So many finalizers of an object are told.
const FINALIZERS: usize = 50;

/// An object that is asked for as a whole.
pub type Live = Seen<true>;

/// An object, without what nothing here looks at. `WHOLE`: more than its metadata comes over the wire. Of
/// kinds whose objects are as they ought to be by being there nothing else is asked for.
#[derive(Clone, Debug)]
pub struct Seen<const WHOLE: bool> {
    /// What a client of kube needs of it.
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

impl<const WHOLE: bool> Seen<WHOLE> {
    /// What is known of it, at the places where an object has it.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// By which a change is noticed.
    #[must_use]
    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// The ManagedResource that it says it comes from.
    #[must_use]
    pub fn origin(&self) -> Option<&str> {
        self.value["metadata"]["annotations"][RESOURCES_ORIGIN].as_str()
    }
}

impl<'de, const WHOLE: bool> Deserialize<'de> for Seen<WHOLE> {
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
        // What is not there is not told as nothing: whether a field is there counts.
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

/// Its kind is known by name only.
impl<const WHOLE: bool> Resource for Seen<WHOLE> {
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
#[path = "tests.rs"]
mod tests;
