//! Durations on a command line.

use std::time::Duration;

/// A duration of a flag that is not valid.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DurationError {
    /// The text is not a duration.
    #[error("write it like 15s or 1m30s ({0})")]
    NoDuration(jiff::Error),
    /// The duration is below zero.
    #[error("a duration cannot be negative")]
    Negative,
}

/// Parses `15s`, `1m30s`, ….
pub(crate) fn parse(text: &str) -> Result<Duration, DurationError> {
    let parsed = text
        .parse::<jiff::SignedDuration>()
        .map_err(DurationError::NoDuration)?;
    Duration::try_from(parsed).map_err(|_| DurationError::Negative)
}
