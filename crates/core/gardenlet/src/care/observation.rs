//! The observation of an aspect of a shoot.

use api::meta::{ConditionStatus, ErrorCode};

/// The observation of an aspect of a shoot.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Whether the condition holds now.
    pub status: ConditionStatus,
    /// CamelCase.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
    /// Well-known causes.
    pub codes: Vec<ErrorCode>,
}

impl Observation {
    pub(super) fn new(status: ConditionStatus, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            reason,
            message: message.into(),
            codes: Vec::new(),
        }
    }
}
