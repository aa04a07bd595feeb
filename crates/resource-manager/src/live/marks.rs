//! What is remembered of an object so that a change by somebody else is noticed, in a few bytes.
//!
//! The API server notes who wrote which field (`managedFields`). What another one changes or takes away
//! leaves our list, whatever its value: so the list alone tells whether the object is as it was applied, and
//! status updates do not matter.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::digest::{Digest, hash};
use crate::names::NAME;

/// Of one object at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// Which object it is, and the fields that are ours.
    fields: u64,
    /// Labels and annotations, whoever wrote them.
    lists: u64,
}

impl Marks {
    pub(super) fn new(uid: Option<&str>, ours: Ours, lists: [u64; 2]) -> Self {
        Self {
            fields: hash((uid, ours.0)),
            lists: hash(lists),
        }
    }

    /// Whether an object with these marks is as it was with `applied`. `exactly`: nobody else's labels and
    /// annotations are borne.
    #[must_use]
    pub fn hold(self, applied: Self, exactly: bool) -> bool {
        self.fields == applied.fields && (!exactly || self.lists == applied.lists)
    }
}

/// The fields that we have applied, as a number; nothing where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ours(Option<u64>);

impl<'de> Deserialize<'de> for Ours {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Managers)
    }
}

/// Of `managedFields`.
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

/// Of one entry.
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
