//! Simulates a gardenlet that carries the state, and the objects named in the status, from the source to the
//! destination.

use api::{extensions::ExtensionObject, meta::NamedResourceReference};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use runtime::client::{Cluster, Seed};
use serde_json::{Value, json};

/// The state and objects that `migrate` left.
pub struct Carried {
    /// The value of `status.state` in the destination.
    pub state: Value,
    resources: Vec<NamedResourceReference>,
    objects: Vec<DynamicObject>,
}

impl Carried {
    /// Reads the objects named in the status of a migrated object. `apart`: a state that is carried outside
    /// of the status.
    pub async fn from_object<K: ExtensionObject>(
        seed: &Seed,
        object: &K,
        apart: Option<Value>,
    ) -> Result<Self, String> {
        let mut carried = Self {
            state: apart.unwrap_or_else(|| state_of(object)),
            resources: resources_of(object),
            objects: Vec::new(),
        };
        for named in &carried.resources {
            let name = &named.resource_ref.name;
            let api = api_of(seed, object, named)?;
            let found = api.get_opt(name).await.map_err(|e| e.to_string())?;
            let mut found = found.ok_or_else(|| {
                format!(
                    "migrate: status.resources names {name}, which is not there: it cannot be carried (RX-33)"
                )
            })?;
            found.metadata.uid = None;
            found.metadata.resource_version = None;
            found.metadata.managed_fields = None;
            carried.objects.push(found);
        }
        Ok(carried)
    }

    /// Creates the carried objects in the destination, and returns the matching status.
    pub async fn create_objects<K: ExtensionObject>(&self, seed: &Seed, object: &K) -> Result<Value, String> {
        for (named, carried) in self.resources.iter().zip(&self.objects) {
            let api = api_of(seed, object, named)?;
            match api.create(&PostParams::default(), carried).await {
                Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                other => drop(other.map_err(|e| format!("could not carry {}: {e}", carried.name_any()))?),
            }
        }
        let mut status = json!({});
        if !self.state.is_null() {
            status["state"] = self.state.clone();
        }
        if !self.resources.is_empty() {
            status["resources"] = json!(self.resources);
        }
        Ok(status)
    }
}

/// `status.state`.
pub fn state_of<K: ExtensionObject>(object: &K) -> Value {
    object
        .default_status()
        .and_then(|status| status.state.clone())
        .map_or(Value::Null, |state| state.0)
}

/// `status.resources`.
pub fn resources_of<K: ExtensionObject>(object: &K) -> Vec<NamedResourceReference> {
    object
        .default_status()
        .map(|status| status.resources.clone())
        .unwrap_or_default()
}

fn api_of<K: ExtensionObject>(
    seed: &Seed,
    object: &K,
    named: &NamedResourceReference,
) -> Result<Api<DynamicObject>, String> {
    let of = &named.resource_ref;
    let version = of.api_version.as_deref().unwrap_or("v1");
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, &of.kind));
    let namespace = object
        .namespace()
        .ok_or_else(|| "status.resources names objects of a namespace, and the object has none".to_owned())?;
    Ok(Api::namespaced_with(seed.client().clone(), &namespace, &kind))
}
