//! Labels and annotations: the first entries, the annotations of this process, and a hash over all entries.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};

use super::{digest::hash, pick::cut};
use crate::names::MEANT_FOR_US;

/// Maximum number of entries that are kept besides the annotations of this process. Objects have a few.
const MOST: usize = 100;

/// Entries of a map of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    /// The kept entries.
    pub(super) first: BTreeMap<String, String>,
    /// Hash over all entries.
    pub(super) digest: u64,
}

impl<'de> Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Entries)
    }
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Listed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of texts")
    }

    fn visit_unit<E>(self) -> Result<Listed, E> {
        Ok(Listed::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Listed, A::Error> {
        let mut listed = Listed::default();
        while let Some((key, value)) = entries.next_entry::<Cow<'_, str>, Cow<'_, str>>()? {
            listed.digest = listed.digest.wrapping_add(hash((&key, &value)));
            if listed.first.len() < MOST || MEANT_FOR_US.contains(&&*key) {
                listed.first.insert(cut(&key).to_owned(), cut(&value).to_owned());
            }
        }
        Ok(listed)
    }
}
