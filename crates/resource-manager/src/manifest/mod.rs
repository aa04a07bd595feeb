//! What the Secrets of a ManagedResource say: their data becomes a list of objects, or sentences that tell
//! what is wrong and where. No sentence holds anything of the data.

mod compression;
mod documents;

use std::collections::{BTreeMap, BTreeSet};

pub use compression::LARGEST;

use crate::object::Wanted;

/// Objects of one ManagedResource. Its status names each of them and must stay below what an API server
/// takes.
pub const MOST_OBJECTS: usize = 2000;

/// Reads the data of Secrets, by their names. Keys are read in their order.
///
/// # Errors
/// Everything that is wrong, one sentence each: `Secret a, key b: …`.
pub fn read(secrets: &BTreeMap<String, BTreeMap<String, Vec<u8>>>) -> Result<Vec<Wanted>, Vec<String>> {
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
#[path = "tests.rs"]
mod tests;
