//! Times as people read times: the age of an event.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// The time between both moments, as kubectl writes ages. A moment in the future counts as now, because
/// clocks of two machines differ.
#[must_use]
pub fn age(then: &Time, now: Timestamp) -> String {
    span(now.duration_since(then.0).as_secs())
}

/// A duration with a single unit, as kubectl writes ages.
#[must_use]
pub fn span(seconds: i64) -> String {
    let seconds = seconds.max(0);
    match seconds {
        ..=120 => format!("{seconds}s"),
        121..=7200 => format!("{}m", seconds / MINUTE),
        7201..=172_800 => format!("{}h", seconds / HOUR),
        _ => format!("{}d", seconds / DAY),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        let now: Timestamp = "2026-01-10T00:00:00Z".parse().unwrap();
        for (then, text) in [
            ("2026-01-09T23:59:48Z", "12s"),
            ("2026-01-09T23:50:00Z", "10m"),
            ("2026-01-09T20:00:00Z", "4h"),
            ("2026-01-05T00:00:00Z", "5d"),
            ("2026-01-10T00:00:05Z", "0s"),
        ] {
            assert_eq!(age(&Time(then.parse().unwrap()), now), text);
        }
    }
}
