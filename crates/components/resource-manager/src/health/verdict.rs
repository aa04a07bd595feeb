//! The health of an object, and helpers to read the object.

use serde_json::Value;

/// The health of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The fault of the object.
    pub wrong: Option<Box<str>>,
    /// The pending part of the last change.
    pub rolls: Option<Box<str>>,
}

impl Health {
    pub(super) fn new(wrong: Option<String>, rolls: Option<String>) -> Self {
        Self {
            wrong: wrong.map(Into::into),
            rolls: rolls.map(Into::into),
        }
    }

    pub(super) fn wrong(why: impl Into<String>) -> Self {
        Self::new(Some(why.into()), None)
    }

    pub(super) fn unless(holds: bool, why: &str) -> Self {
        if holds { Self::default() } else { Self::wrong(why) }
    }
}

/// A number of the object; `default` if the field is missing.
pub(super) fn number(object: &Value, path: &str, default: i64) -> i64 {
    object.pointer(path).and_then(Value::as_i64).unwrap_or(default)
}

/// Status and reason of a condition; `None` without that condition.
pub(super) fn condition<'a>(object: &'a Value, type_: &str) -> Option<(&'a str, &'a str)> {
    let conditions = object["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == type_)?;
    Some((
        found["status"].as_str().unwrap_or(""),
        found["reason"].as_str().unwrap_or(""),
    ))
}

/// Whether the controller of the object has observed the last change.
pub(super) fn is_observed(object: &Value) -> bool {
    number(object, "/status/observedGeneration", 0) >= number(object, "/metadata/generation", 0)
}
