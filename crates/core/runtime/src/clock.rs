//! The only place that reads the wall clock, so that a test or a reader can find every use of wall-clock
//! time.
//!
//! Wall-clock time is for people and for fields of the API. Measured times (back-off, expiry, a bound) use
//! the monotonic [`tokio::time::Instant`], because a test can pause that clock.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The current time, for the API's timestamps.
#[must_use]
#[allow(clippy::disallowed_methods)] // this is the clock
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// The current time as a Kubernetes timestamp: whole seconds, the precision that the API server keeps.
#[must_use]
pub fn now_k8s() -> Time {
    let now = now();
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// The current time in RFC 3339 with nanoseconds, the format of the annotation `gardener.cloud/timestamp`.
#[must_use]
pub fn now_rfc3339_nano() -> String {
    format!("{:.9}", now())
}
