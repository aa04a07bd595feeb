//! The body of an applied object: the manifest without fields of the server, and with the marks of the
//! ManagedResource.

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::{Key, Owner};
use crate::names::{MANAGED_BY, MANAGED_BY_LABEL, RESOURCES_ORIGIN};

/// The additions to all objects of a ManagedResource.
#[derive(Clone, Debug)]
pub struct Dress<'a> {
    /// The ManagedResource of the objects.
    pub owner: &'a Owner,
    /// `spec.injectLabels`.
    pub labels: &'a BTreeMap<String, String>,
}

/// Fields of metadata that the server sets.
const OF_SERVER: &[&str] = &[
    "managedFields",
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "selfLink",
];

/// The body of the object `key` (with the namespace by the cluster's rules).
#[must_use]
pub fn dressed(manifest: &Value, key: &Key, dress: &Dress<'_>) -> Value {
    let mut body = manifest.clone();
    let Some(object) = body.as_object_mut() else {
        return body;
    };
    object.remove("status");
    if key.is("", "Secret") {
        plain_to_data(object);
    }
    let metadata = child(object, "metadata");
    for field in OF_SERVER {
        metadata.remove(*field);
    }
    match &key.namespace {
        Some(namespace) => metadata.insert("namespace".to_owned(), json!(namespace)),
        None => metadata.remove("namespace"),
    };
    let labels = child(metadata, "labels");
    labels.extend(
        dress
            .labels
            .iter()
            .map(|(key, value)| (key.clone(), json!(value))),
    );
    labels.insert(MANAGED_BY_LABEL.to_owned(), json!(MANAGED_BY));
    child(metadata, "annotations").insert(RESOURCES_ORIGIN.to_owned(), json!(dress.owner.origin()));
    for template in ["/spec/template", "/spec/jobTemplate/spec/template"] {
        inject(body.pointer_mut(template), dress.labels);
    }
    body
}

/// Adds the labels to the pods of a workload, too.
fn inject(template: Option<&mut Value>, labels: &BTreeMap<String, String>) {
    let Some(template) = template
        .and_then(Value::as_object_mut)
        .filter(|_| !labels.is_empty())
    else {
        return;
    };
    // Templates of objects other than pods stay unchanged.
    if template
        .get("spec")
        .and_then(|spec| spec.get("containers"))
        .is_none()
    {
        return;
    }
    let into = child(child(template, "metadata"), "labels");
    into.extend(labels.iter().map(|(key, value)| (key.clone(), json!(value))));
}

/// Moves `stringData` to `data`. `stringData` is write-only: the server would not detect a change.
fn plain_to_data(secret: &mut Map<String, Value>) {
    let Some(Value::Object(plain)) = secret.remove("stringData") else {
        return;
    };
    let data = child(secret, "data");
    for (key, value) in plain {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        data.insert(key, json!(STANDARD.encode(text)));
    }
}

/// The map in this field, created if missing.
fn child<'a>(object: &'a mut Map<String, Value>, field: &str) -> &'a mut Map<String, Value> {
    let below = object.entry(field).or_insert_with(|| json!({}));
    if !below.is_object() {
        *below = json!({});
    }
    match below {
        Value::Object(map) => map,
        _ => unreachable!("it was made a map just now"),
    }
}
