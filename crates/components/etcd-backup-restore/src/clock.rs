//! The wall clock, read only here. Durations are measured with the monotonic clock instead.

use jiff::Timestamp;

/// The time now, for names and time stamps.
#[must_use]
#[allow(clippy::disallowed_methods)] // this crate must not depend on `runtime`, whose clock the others read
pub fn now() -> Timestamp {
    Timestamp::now()
}
