//! Wanted objects, before any cluster has the objects.

mod dressed;
mod handling;
mod key;
mod order;
mod reach;

pub use dressed::{Dress, dressed};
pub use handling::{Handling, is_true};
pub use key::{Key, Owner};
pub use order::Phase;
use serde_json::Value;

/// An object of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct ManifestObject {
    /// Identity of the object.
    pub key: Key,
    /// The handling of the object.
    pub handling: Handling,
    /// The manifest.
    pub body: Value,
}

impl ManifestObject {
    /// Reads a manifest.
    ///
    /// # Errors
    /// A required field is missing, or an annotation of this process has an invalid value.
    pub fn new(body: Value) -> Result<Self, String> {
        let text = |path: &str| {
            body.pointer(path)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        // An unquoted `n` is `false` in YAML: such a name must be refused, not replaced.
        for field in ["name", "namespace"] {
            let value = &body["metadata"][field];
            if !value.is_null() && !value.is_string() {
                return Err(format!("metadata.{field} is no text: put it in quotes"));
            }
        }
        let (Some(version), Some(kind)) = (text("/apiVersion"), text("/kind")) else {
            return Err("an object needs apiVersion and kind".to_owned());
        };
        let Some(name) = text("/metadata/name") else {
            return Err(format!("a {kind} has no metadata.name"));
        };
        let key = Key::new(version, kind, text("/metadata/namespace"), name);
        let handling = Handling::from_object(&body).map_err(|why| format!("{key}: {why}"))?;
        Ok(Self { key, handling, body })
    }
}

#[cfg(test)]
mod tests;
