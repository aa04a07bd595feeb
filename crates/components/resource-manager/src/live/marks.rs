//! The remembered marks of an object, in a few bytes. The marks show a change by another writer.
//!
//! The API server records the manager of each field (`managedFields`). A field that another writer changes or
//! deletes leaves the list of this process, for any value. So the list alone shows whether the object is as
//! applied, and status updates do not matter.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::digest::{Digest, hash};
use crate::names::NAME;

/// The marks of an object at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Hash of the uid and of the fields of this process.
    fields: u64,
    /// Hash of labels and annotations of all writers.
    lists: u64,
}

impl Marks {
    pub(super) fn new(uid: Option<&str>, ours: Ours, lists: [u64; 2]) -> Self {
        Self {
            fields: hash((uid, ours.0)),
            lists: hash(lists),
        }
    }

    /// Whether an object with these marks is unchanged since `applied`. `exactly`: labels and annotations of
    /// other writers count as a change.
    #[must_use]
    pub fn hold(self, applied: Self, exactly: bool) -> bool {
        self.fields == applied.fields && (!exactly || self.lists == applied.lists)
    }
}

/// Hash of the fields that this process has applied; `None` without such fields.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ours(Option<u64>);

impl<'de> Deserialize<'de> for Ours {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Managers)
    }
}

/// Visitor of `managedFields`.
struct Managers;

impl<'de> Visitor<'de> for Managers {
    type Value = Ours;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of managers")
    }

    fn visit_unit<E>(self) -> Result<Ours, E> {
        Ok(Ours::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut managers: A) -> Result<Ours, A::Error> {
        let mut ours = Ours::default();
        while let Some(Ours(fields)) = managers.next_element_seed(Manager)? {
            ours.0 = ours.0.or(fields);
        }
        Ok(ours)
    }
}

/// Visitor of an entry.
struct Manager;

impl<'de> serde::de::DeserializeSeed<'de> for Manager {
    type Value = Ours;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Ours, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Manager {
    type Value = Ours;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a manager of fields")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entry: A) -> Result<Ours, A::Error> {
        let (mut is_us, mut applied, mut of_status, mut fields) = (false, false, false, None);
        while let Some(key) = entry.next_key::<Cow<'_, str>>()? {
            match &*key {
                "manager" => is_us = entry.next_value::<Cow<'_, str>>()? == NAME,
                "operation" => applied = entry.next_value::<Cow<'_, str>>()? == "Apply",
                "subresource" => of_status = !entry.next_value::<Cow<'_, str>>()?.is_empty(),
                "fieldsV1" => fields = entry.next_value::<Option<Digest>>()?,
                _ => drop(entry.next_value::<IgnoredAny>()?),
            }
        }
        let is_ours = is_us && applied && !of_status;
        Ok(Ours(fields.filter(|_| is_ours).map(|Digest(fields)| fields)))
    }
}
