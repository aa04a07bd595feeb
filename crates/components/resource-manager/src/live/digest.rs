//! A hash in place of the content.

use std::{borrow::Cow, fmt, hash::Hash};

use runtime::controller::runner;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// Deeper content is ignored. This process writes no such depth, and other writers must not make an object
/// unreadable.
const DEEPEST: usize = 64;

/// Hash of a content, independent of the order of fields. Comparable only within a single process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest(pub(super) u64);

/// Hash of any hashable value.
pub(super) fn hash(value: impl Hash) -> u64 {
    runner::hash(value)
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Below(0).deserialize(deserializer).map(Self)
    }
}

/// The reader at this depth.
struct Below(usize);

impl<'de> DeserializeSeed<'de> for Below {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        if self.0 > DEEPEST {
            return IgnoredAny::deserialize(deserializer).map(|_| 0);
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Below {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_unit<E: Error>(self) -> Result<u64, E> {
        Ok(hash(()))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<u64, E> {
        Ok(hash(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        Ok(hash(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        Ok(hash(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<u64, E> {
        Ok(hash(value.to_bits()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<u64, E> {
        Ok(hash(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<u64, A::Error> {
        let mut all = hash("list");
        while let Some(element) = elements.next_element_seed(Self(self.0 + 1))? {
            all = hash((all, element));
        }
        Ok(all)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<u64, A::Error> {
        let mut all = hash("map");
        while let Some(key) = entries.next_key::<Cow<'_, str>>()? {
            let value = entries.next_value_seed(Self(self.0 + 1))?;
            all = all.wrapping_add(hash((key, value)));
        }
        Ok(all)
    }
}
