//! The one place that reads the wall clock, so that a test or a reader can find every use of it.
//!
//! Wall-clock time is for people and for fields of the API. What must be measured (back-off, expiry, a bound)
//! uses the monotonic [`tokio::time::Instant`], which a test can pause.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// The current time, for the API's timestamps.
#[must_use]
#[allow(clippy::disallowed_methods)] // this is the clock
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// The current time as a Kubernetes timestamp: whole seconds, as the API server would cut it.
#[must_use]
pub fn now_k8s() -> Time {
    let now = now();
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// The current time in RFC 3339 with nanoseconds, as the annotation `gardener.cloud/timestamp` wants it.
#[must_use]
pub fn now_rfc3339_nano() -> String {
    format!("{:.9}", now())
}
