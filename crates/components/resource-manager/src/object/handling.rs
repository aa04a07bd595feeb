//! Annotations for the handling of an object, in a manifest or in a cluster. Other annotations are ignored.

use std::time::Duration;

use jiff::SignedDuration;
use serde_json::Value;

use crate::names::{
    DELETE_ON_INVALID_UPDATE, FINALIZE_DELETION_AFTER, PRESERVE_REPLICAS, PRESERVE_RESOURCES,
    RESOURCES_IGNORE, RESOURCES_KEEP_OBJECT, RESOURCES_MODE, SKIP_HEALTH_CHECK,
};

/// The handling of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // one field for each annotation
pub struct Handling {
    /// `ignore`: the object is created if missing, and not changed afterwards.
    pub once: bool,
    /// `mode=Ignore`: the object is neither changed nor deleted, and is no longer managed.
    pub released: bool,
    /// `keep-object`: the object is not deleted.
    pub kept: bool,
    /// `skip-health-check`: the health of the object does not count.
    pub unjudged: bool,
    /// `delete-on-invalid-update`: the object is deleted and created again if an update is invalid.
    pub remade: bool,
    /// `preserve-replicas`: the present number of replicas stays.
    pub own_replicas: bool,
    /// `preserve-resources`: the present requests and limits of the containers stay.
    pub own_resources: bool,
    /// `finalize-deletion-after`: the finalizers of the object are removed when the deletion has taken this
    /// long.
    pub finalized_after: Option<Duration>,
}

impl Handling {
    /// Reads the annotations of an object.
    ///
    /// # Errors
    /// An annotation of this process has an invalid value: an error is better than a guess.
    pub fn from_object(object: &Value) -> Result<Self, String> {
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

/// The values that count as true in these annotations.
#[must_use]
pub fn is_true(value: &str) -> bool {
    matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// Parses a duration in Go's notation.
fn duration(text: &str) -> Option<Duration> {
    let read: SignedDuration = text.parse().ok()?;
    Duration::try_from(read).ok()
}
