//! The intervals and bounds that a Seed gives: read, and judged together, in one place for all who act by
//! them.

use std::time::Duration;

use api::{
    druid::{OwnerCheckSilence, OwnerCheckSpec},
    gardencore::seed::OwnerChecks,
};
use ownership::{GivenError, Settings, Terms};

/// Those by which a seed asks; what it does not give is as in `usual`. What silence does is no part of them:
/// that is a matter of etcd, and the process beside it passes it on to all others by what it says of itself.
///
/// # Errors
/// The field, what is wrong with it or with all of them together, and what to write.
pub fn terms(checks: &OwnerChecks, usual: Terms) -> Result<Terms, String> {
    usual.given(checks.durations(), checks.drift).map_err(said)
}

/// How long a destination waits for a seed that gives this: the longer one of its fence and of what the
/// others need.
///
/// # Errors
/// What cannot be read.
pub fn needed_fence(checks: &OwnerChecks, usual: Terms) -> Result<Duration, String> {
    settings(checks, usual).map(|settings| settings.needs())
}

/// The settings of a seed that gives this, also where they do not fit together.
///
/// # Errors
/// What cannot be read.
pub fn settings(checks: &OwnerChecks, usual: Terms) -> Result<Settings, String> {
    usual
        .settings()
        .given(checks.durations(), checks.drift)
        .map_err(said)
}

/// Whether a destination that waits for this long may take over beside an etcd that asks like that. Not
/// beside one whose settings cannot be read: it goes on with those of before.
#[must_use]
pub fn is_fenced_by(check: &OwnerCheckSpec, fence: Duration) -> bool {
    let settings = Settings::default().given(check.durations(), check.drift);
    check.silence != Some(OwnerCheckSilence::Tolerate)
        && settings.is_ok_and(|settings| settings.is_fenced_by(fence))
}

fn said(error: GivenError) -> String {
    match error {
        GivenError::Field { field, what } => {
            format!("spec.settings.ownerChecks.{field} of the Seed {what}")
        }
        GivenError::Together(_) => format!("spec.settings.ownerChecks of the Seed {error}"),
    }
}

#[cfg(test)]
#[path = "terms_tests.rs"]
mod tests;
