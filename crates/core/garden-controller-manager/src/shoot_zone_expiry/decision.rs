//! Whether the time of a zone has come: a pure decision.

use std::time::Duration;

use api::{
    constants::{SHOOT_ISOLATED_ZONE, SHOOT_ISOLATED_ZONE_EXPIRES},
    gardencore::Shoot,
};
use jiff::Timestamp;
use kube::ResourceExt;

/// The decision of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// No action, and no time will come.
    Nothing,
    /// No action for this time.
    Wait(Duration),
    /// The time is invalid.
    Unreadable {
        /// The value of the annotation.
        text: String,
    },
    /// Remove both annotations.
    TakeBack {
        /// The zone, by its provider's ID.
        zone: String,
        /// The time at which the isolation expired.
        expired: Timestamp,
    },
    /// The zone is not isolated any more: remove its time.
    Forget,
}

/// The decision about the Shoot at `now`.
#[must_use]
pub fn decide(shoot: &Shoot, now: Timestamp) -> Decision {
    let annotation = |key: &str| shoot.annotations().get(key).map(|value| value.trim());
    let Some(text) = annotation(SHOOT_ISOLATED_ZONE_EXPIRES) else {
        return Decision::Nothing;
    };
    let Some(zone) = annotation(SHOOT_ISOLATED_ZONE).filter(|zone| !zone.is_empty()) else {
        return Decision::Forget;
    };
    let Ok(expired) = text.parse::<Timestamp>() else {
        return Decision::Unreadable {
            text: text.to_owned(),
        };
    };
    match Duration::try_from(expired.duration_since(now)) {
        Ok(rest) if !rest.is_zero() => Decision::Wait(rest),
        _ => Decision::TakeBack {
            zone: zone.to_owned(),
            expired,
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn decided(zone: Option<&str>, expires: Option<&str>) -> Decision {
        let shoot = serde_json::from_value(json!({
            "metadata": {"name": "demo", "annotations": {}},
            "spec": {"region": "r", "provider": {"type": "metal"}},
        }));
        let mut shoot: Shoot = shoot.unwrap();
        let said = [
            (SHOOT_ISOLATED_ZONE, zone),
            (SHOOT_ISOLATED_ZONE_EXPIRES, expires),
        ];
        for (key, value) in said {
            if let Some(value) = value {
                shoot.annotations_mut().insert(key.to_owned(), value.to_owned());
            }
        }
        decide(&shoot, "2026-01-05T12:00:00Z".parse().unwrap())
    }

    #[test]
    fn a_zone_is_taken_back_at_its_time_and_never_without_one() {
        let hour = Decision::Wait(Duration::from_secs(3600));
        assert_eq!(decided(Some("z"), None), Decision::Nothing);
        assert_eq!(decided(None, None), Decision::Nothing);
        assert_eq!(decided(Some("z"), Some("2026-01-05T13:00:00Z")), hour);
        assert_eq!(decided(Some("z"), Some(" 2026-01-05T14:00:00+01:00 ")), hour);
        for past in [
            "2026-01-05T12:00:00Z",
            "2026-01-05T11:59:59Z",
            "0001-01-01T00:00:00Z",
        ] {
            let expired = past.parse().unwrap();
            let zone = "z".to_owned();
            assert_eq!(
                decided(Some("z"), Some(past)),
                Decision::TakeBack { zone, expired }
            );
        }
    }

    #[test]
    fn a_time_that_is_none_takes_nothing_away() {
        for text in ["", "tomorrow", "2026-02-30T00:00:00Z", "2026-01-05", "13:00"] {
            let text = text.to_owned();
            assert_eq!(decided(Some("z"), Some(&text)), Decision::Unreadable { text });
        }
    }

    #[test]
    fn the_time_of_a_zone_that_is_back_is_not_that_of_the_next_one() {
        assert_eq!(decided(None, Some("2026-01-05T13:00:00Z")), Decision::Forget);
        assert_eq!(decided(Some(""), Some("tomorrow")), Decision::Forget);
    }
}
