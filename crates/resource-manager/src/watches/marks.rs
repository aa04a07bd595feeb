//! What is remembered of an object so that a change by somebody else is noticed, in a few bytes.
//!
//! The API server notes who wrote which field (`managedFields`). What another one changes or takes away leaves our list, whatever
//! its value: so the list alone tells whether the object is as it was applied, and status updates do not matter.

use std::hash::{DefaultHasher, Hash, Hasher};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

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
    /// Of an object.
    #[must_use]
    pub fn of(meta: &ObjectMeta) -> Self {
        let ours = meta.managed_fields.iter().flatten().find(|entry| {
            entry.manager.as_deref() == Some(NAME)
                && entry.operation.as_deref() == Some("Apply")
                && entry.subresource.as_deref().unwrap_or_default().is_empty()
        });
        let fields = ours
            .and_then(|entry| entry.fields_v1.as_ref())
            .map(|fields| fields.0.to_string());
        Self {
            fields: hash((&meta.uid, fields)),
            lists: hash((&meta.labels, &meta.annotations)),
        }
    }

    /// Whether an object with these marks is as it was with `applied`. `exactly`: nobody else's labels and annotations are borne.
    #[must_use]
    pub fn hold(self, applied: Self, exactly: bool) -> bool {
        self.fields == applied.fields && (!exactly || self.lists == applied.lists)
    }
}

fn hash(value: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
