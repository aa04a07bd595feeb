//! Reads and validates the intervals and bounds of a Seed, in a single place for all processes that use the
//! values.

use std::time::Duration;

use api::{
    druid::{OwnerCheckSilence, OwnerCheckSpec},
    gardencore::seed::OwnerChecks,
};
use ownership::{OverrideError, Settings, Terms};

/// The terms of a seed's check; fields that the Seed does not set come from `usual`. `silence` is not part of
/// the terms: the field concerns etcd, and the process beside etcd passes the effect on through reported
/// validity.
///
/// # Errors
/// The field, the fault (of the field or of all fields together), and the remedy.
pub fn terms(checks: &OwnerChecks, usual: Terms) -> Result<Terms, String> {
    usual
        .with_overrides(checks.durations(), checks.drift)
        .map_err(describe_error)
}

/// The time that a destination waits for a seed with these settings: the longer of the seed's fence and the
/// fence that the remaining durations need.
///
/// # Errors
/// A field cannot be parsed.
pub fn needed_fence(checks: &OwnerChecks, usual: Terms) -> Result<Duration, String> {
    settings(checks, usual).map(|settings| settings.needs())
}

/// The settings of a seed, also where the durations do not fit together.
///
/// # Errors
/// A field cannot be parsed.
pub fn settings(checks: &OwnerChecks, usual: Terms) -> Result<Settings, String> {
    usual
        .settings()
        .with_overrides(checks.durations(), checks.drift)
        .map_err(describe_error)
}

/// Whether a destination with this fence may take over beside an etcd with these settings. `false` if the
/// settings cannot be parsed, because such an etcd continues with the earlier settings.
#[must_use]
pub fn is_fenced_by(check: &OwnerCheckSpec, fence: Duration) -> bool {
    let settings = Settings::default().with_overrides(check.durations(), check.drift);
    check.silence != Some(OwnerCheckSilence::Tolerate)
        && settings.is_ok_and(|settings| settings.is_fenced_by(fence))
}

fn describe_error(error: OverrideError) -> String {
    match error {
        OverrideError::Field { field, what } => {
            format!("spec.settings.ownerChecks.{field} of the Seed {what}")
        }
        OverrideError::Together(_) => format!("spec.settings.ownerChecks of the Seed {error}"),
    }
}

#[cfg(test)]
#[path = "terms_tests.rs"]
mod tests;
