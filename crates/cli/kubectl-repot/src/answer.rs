//! The answer of a command, as text for people and as JSON for scripts.

use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::{EXIT_REFUSED, Failure};

/// The answer of a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The text for people, with a line end.
    pub text: String,
    /// The same answer for scripts.
    pub json: Value,
    /// Whether the answer names obstacles: the exit code is 2.
    pub has_obstacles: bool,
}

impl Answer {
    /// An answer without obstacles. A type that JSON cannot express gives `null`.
    #[must_use]
    pub fn new(text: impl Into<String>, json: &impl Serialize) -> Self {
        Self {
            text: text.into(),
            json: serde_json::to_value(json).unwrap_or_default(),
            has_obstacles: false,
        }
    }

    /// The same answer with obstacles, if there are any.
    #[must_use]
    pub fn with_obstacles(self, has_obstacles: bool) -> Self {
        Self {
            has_obstacles,
            ..self
        }
    }

    /// The exit code of the process.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        if self.has_obstacles { EXIT_REFUSED } else { 0 }
    }
}

/// A failure for scripts.
#[must_use]
pub fn failure_as_json(failure: &Failure) -> Value {
    json!({"error": failure.to_string(), "refused": matches!(failure, Failure::Refused(_))})
}
