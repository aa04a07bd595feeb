//! Annotations by which a manifest, or an object that is there, says how it is to be handled. Others are left
//! alone.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::Value;

use crate::names::{
    DELETE_ON_INVALID_UPDATE, FINALIZE_DELETION_AFTER, PRESERVE_REPLICAS, PRESERVE_RESOURCES,
    RESOURCES_IGNORE, RESOURCES_KEEP_OBJECT, RESOURCES_MODE, SKIP_HEALTH_CHECK,
};

/// How an object is to be handled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // one for each annotation
pub struct Handling {
    /// `ignore`: it is made where it is missing, and left alone afterwards.
    pub once: bool,
    /// `mode=Ignore`: nothing is done with it, and it is not ours any more.
    pub released: bool,
    /// `keep-object`: it is not deleted.
    pub kept: bool,
    /// `skip-health-check`: it does not count when health is judged.
    pub unjudged: bool,
    /// `delete-on-invalid-update`: it is made anew where it cannot be changed.
    pub remade: bool,
    /// `preserve-replicas`: the replicas that it has are right.
    pub own_replicas: bool,
    /// `preserve-resources`: the requests and limits that its containers have are right.
    pub own_resources: bool,
    /// `finalize-deletion-after`: it loses its finalizers when it has been deleted for so long.
    pub finalized_after: Option<Duration>,
}

impl Handling {
    /// Reads the annotations of an object.
    ///
    /// # Errors
    /// One that is meant for us has a value that means nothing: better told than guessed.
    pub fn of(object: &Value) -> Result<Self, String> {
        let annotations = &object["metadata"]["annotations"];
        let says = |key: &str| annotations[key].as_str().is_some_and(is_true);
        let finalized_after = match annotations[FINALIZE_DELETION_AFTER].as_str() {
            Some(text) => Some(duration(text).ok_or_else(|| {
                format!(
                    "the annotation {FINALIZE_DELETION_AFTER} is no duration: write one like 10m or 1h30m"
                )
            })?),
            None => None,
        };
        Ok(Self {
            once: says(RESOURCES_IGNORE),
            released: annotations[RESOURCES_MODE].as_str() == Some("Ignore"),
            kept: says(RESOURCES_KEEP_OBJECT),
            unjudged: says(SKIP_HEALTH_CHECK),
            remade: says(DELETE_ON_INVALID_UPDATE),
            own_replicas: says(PRESERVE_REPLICAS),
            own_resources: says(PRESERVE_RESOURCES),
            finalized_after,
        })
    }
}

/// What counts as a yes in these annotations.
#[must_use]
pub fn is_true(value: &str) -> bool {
    matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// A duration as Go writes it.
fn duration(text: &str) -> Option<Duration> {
    let read: SignedDuration = text.parse().ok()?;
    Duration::try_from(read).ok()
}
