//! Reads the Secrets of a ManagedResource: the data becomes a list of objects, or sentences with the fault
//! and the place. No sentence contains any part of the data.

mod compression;
mod documents;

use std::collections::{BTreeMap, BTreeSet};

pub use compression::LARGEST;

use crate::object::ManifestObject;

/// Maximum number of objects of a ManagedResource. The status names each object and must stay below the size
/// limit of the API server.
pub const MOST_OBJECTS: usize = 2000;

/// Reads the data of Secrets, in the order of the names. Keys are read in order, too.
///
/// # Errors
/// All faults, one sentence each: `Secret a, key b: …`.
pub fn read(
    secrets: &BTreeMap<String, BTreeMap<String, Vec<u8>>>,
) -> Result<Vec<ManifestObject>, Vec<String>> {
    let (mut objects, mut wrong, mut left) = (Vec::new(), Vec::new(), LARGEST);
    for (secret, data) in secrets {
        for (key, bytes) in data {
            let place = format!("Secret {secret}, key {key}");
            let read = compression::unpack(key, bytes, left).and_then(|text| {
                left -= text.len();
                documents::objects(&text)
            });
            match read {
                Ok(found) => objects.extend(found),
                Err(why) => wrong.push(format!("{place}: {why}")),
            }
        }
    }
    let mut seen = BTreeSet::new();
    for object in &objects {
        if !seen.insert(object.key.identity()) {
            wrong.push(format!("{} is there more than once: keep one", object.key));
        }
    }
    if objects.len() > MOST_OBJECTS {
        let many = objects.len();
        wrong.push(format!(
            "{many} objects are more than {MOST_OBJECTS}: use several ManagedResources"
        ));
    }
    if wrong.is_empty() { Ok(objects) } else { Err(wrong) }
}

#[cfg(test)]
mod tests;
