//! Parses YAML and JSON documents to objects.

use serde_json::Value;
use serde_saphyr::Error;

use crate::object::ManifestObject;

/// The objects of a text with any number of documents. A list (`kind: List`) stands for the list's items.
///
/// # Errors
/// A sentence with the place of the fault, without any part of the text.
pub fn objects(text: &str) -> Result<Vec<ManifestObject>, String> {
    let documents = if text.trim_start().starts_with('{') {
        json(text)?
    } else {
        yaml(text)?
    };
    let mut found = Vec::new();
    for (number, document) in documents.into_iter().enumerate() {
        flatten(document, &mut found).map_err(|why| format!("document {}: {why}", number + 1))?;
    }
    Ok(found)
}

fn json(text: &str) -> Result<Vec<Value>, String> {
    let read: Result<Vec<Value>, _> = serde_json::Deserializer::from_str(text).into_iter().collect();
    // A text that begins like JSON may still be YAML.
    read.or_else(|error| {
        yaml(text).map_err(|_| {
            format!(
                "is neither JSON (line {}, column {}) nor YAML",
                error.line(),
                error.column()
            )
        })
    })
}

fn yaml(text: &str) -> Result<Vec<Value>, String> {
    let options = serde_saphyr::options! {
        // The same reading as in Kubernetes: `defaultMode: 0440`.
        legacy_octal_numbers: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_saphyr::from_multiple_with_options(text, options).map_err(|error| {
        let what = match &error {
            Error::DuplicateMappingKey { .. } => "a field is there twice",
            Error::UnknownAnchor { .. } => "an alias (*) stands for nothing",
            Error::UnsupportedTag { .. } => "a tag (!) is not known",
            _ => "is not valid YAML",
        };
        match error.location().filter(|place| place.line() > 0) {
            Some(place) => format!("{what} (line {}, column {})", place.line(), place.column()),
            None => what.to_owned(),
        }
    })
}

/// Adds no object, a single object, or the items of a list.
fn flatten(document: Value, found: &mut Vec<ManifestObject>) -> Result<(), String> {
    if document.is_null() {
        return Ok(());
    }
    let is_list = document["kind"]
        .as_str()
        .is_some_and(|kind| kind.ends_with("List"));
    if let (true, Value::Array(items)) = (is_list, &document["items"]) {
        return items.iter().cloned().try_for_each(|item| flatten(item, found));
    }
    found.push(ManifestObject::new(document)?);
    Ok(())
}
