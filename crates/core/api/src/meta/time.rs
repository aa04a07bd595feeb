//! Times that an API server accepts (`crate::limits`), in the fields that seeds write and the suite writes
//! back.
//!
//! An object from before the limits can hold a time outside of these years. Each later write of the list or
//! record with that time would be refused. So the reader takes the nearest time that can be written.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::{Deserialize, Deserializer};

/// 0000-01-01T00:00:00Z.
const FIRST: Timestamp = Timestamp::constant(-62_167_219_200, 0);
/// 8999-12-31T23:59:59.999999999Z.
const LAST: Timestamp = Timestamp::constant(221_845_391_999, 999_999_999);

/// For `deserialize_with` of a required time.
pub(crate) fn writable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
    Time::deserialize(deserializer).map(|time| nearest(&time))
}

/// For `deserialize_with` of an optional time. The field needs `default`, too.
pub(crate) fn writable_option<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    Option::<Time>::deserialize(deserializer).map(|time| time.as_ref().map(nearest))
}

fn nearest(time: &Time) -> Time {
    Time(time.0.clamp(FIRST, LAST))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use crate::{gardencore::shoot::RestoredData, meta::Condition};

    #[test]
    fn a_time_outside_of_the_accepted_years_is_written_back_in_an_accepted_form() {
        for (stored, written) in [
            ("8999-12-31T23:59:59-23:59", "8999-12-31T23:59:59Z"),
            ("9000-01-01T00:00:00Z", "8999-12-31T23:59:59Z"),
            ("0000-01-01T00:00:00+23:59", "0000-01-01T00:00:00Z"),
            ("0000-01-01T00:00:00.5+00:01", "0000-01-01T00:00:00Z"),
            ("8999-12-31T23:59:59.9Z", "8999-12-31T23:59:59Z"),
            ("2026-01-01T01:00:00+01:00", "2026-01-01T00:00:00Z"),
        ] {
            let condition: Condition = serde_json::from_value(json!({
                "type": "T", "status": "True", "reason": "R", "message": "m", "lastTransitionTime": stored,
                "lastUpdateTime": stored,
            }))
            .unwrap();
            let condition = json!(condition);
            assert_eq!(condition["lastTransitionTime"], written, "{stored}");
            assert_eq!(condition["lastUpdateTime"], written, "{stored}");
            let restored: RestoredData =
                serde_json::from_value(json!({"epoch": 1, "saved": stored, "fenced": stored})).unwrap();
            let restored = json!(restored);
            assert_eq!(restored, json!({"epoch": 1, "saved": written, "fenced": written}));
        }
    }

    #[test]
    fn an_absent_time_stays_absent() {
        let stored = json!({"epoch": 1, "fenced": "2026-01-01T00:00:00Z"});
        let restored: RestoredData = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(json!(restored), stored);
    }
}
