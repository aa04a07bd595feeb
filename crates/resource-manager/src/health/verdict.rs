//! What is said of an object, and how it is read.

use serde_json::Value;

/// How an object is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// What is wrong with it.
    pub wrong: Option<Box<str>>,
    /// What is still to come of the last change.
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

/// A number of the object; where it is not said, the default.
pub(super) fn number(object: &Value, path: &str, default: i64) -> i64 {
    object.pointer(path).and_then(Value::as_i64).unwrap_or(default)
}

/// Status and reason of a condition; nothing where there is none.
pub(super) fn condition<'a>(object: &'a Value, type_: &str) -> Option<(&'a str, &'a str)> {
    let conditions = object["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|condition| condition["type"] == type_)?;
    Some((
        found["status"].as_str().unwrap_or(""),
        found["reason"].as_str().unwrap_or(""),
    ))
}

/// Whether the controller of the object has seen its last change.
pub(super) fn is_observed(object: &Value) -> bool {
    number(object, "/status/observedGeneration", 0) >= number(object, "/metadata/generation", 0)
}
