//! Objects as they are wanted, before they are anywhere.

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
pub struct Wanted {
    /// What it is called.
    pub key: Key,
    /// How it is to be handled.
    pub handling: Handling,
    /// The manifest.
    pub body: Value,
}

impl Wanted {
    /// Reads a manifest.
    ///
    /// # Errors
    /// A field without which it is no object, or an annotation that is meant for us and makes no sense.
    pub fn new(body: Value) -> Result<Self, String> {
        let text = |path: &str| {
            body.pointer(path)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        // A plain `n` is false to YAML: the object must not go elsewhere for that.
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
        let handling = Handling::of(&body).map_err(|why| format!("{key}: {why}"))?;
        Ok(Self { key, handling, body })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
