//! When a Shoot is reconciled again by itself for the sake of a zone: a failover was refused for a reason
//! that can pass, or has ended while machines in other zones were not ready. Pure.

use std::time::Duration;

use api::{
    constants::condition::ZONE_ISOLATION,
    gardencore::{
        Shoot,
        shoot::{ZoneIsolationPhase as Phase, ZoneIsolationStatus as Status},
    },
    meta::{Condition, find_condition},
};
use jiff::{SignedDuration, Timestamp};
use placement::isolation::{IsolationRefusal, asked_zone, asks_to_close_now, recorded};

/// Reason of condition `ZoneIsolation`: the zone is isolated, and machines in other zones are not ready.
pub(crate) const OTHER_ZONES_NOT_READY: &str = "OtherZonesNotReady";
/// Reasons of refusals that pass without a change of the Shoot.
const PASSING: [&str; 3] = ["NodesUnknown", "NoNodeElsewhere", "ControlPlaneInZone"];
/// Addition to a refusal for these reasons.
const CHECKED_AGAIN: &str =
    " The gardenlet checks again by itself, each minute for 10 minutes, then every 10 minutes.";
/// Addition to a refusal while the user requests to close the network now.
const REQUEST_STAYS: &str = " Annotation shoot.gardener.cloud/isolated-zone-close-now=true stays: the network is closed as soon as the \
                             failover is admitted.";
/// At first: a silent API answers within minutes, and a sick zone is urgent.
const SOON: Duration = Duration::from_secs(60);
/// From [`URGENT`] on.
const LATER: Duration = Duration::from_secs(10 * 60);
/// How long a check follows [`SOON`] after the check before.
const URGENT: SignedDuration = SignedDuration::from_mins(10);

/// The message of a refusal, with the next steps of the gardenlet.
#[must_use]
pub(crate) fn refusal_message(shoot: &Shoot, refusal: &IsolationRefusal) -> String {
    let mut message = refusal.message.clone();
    if PASSING.contains(&refusal.reason) {
        message.push_str(CHECKED_AGAIN);
    }
    with_request(shoot, &message)
}

/// The message of a refusal, with or without the sentence about a request to close the network now.
#[must_use]
pub(crate) fn with_request(shoot: &Shoot, message: &str) -> String {
    let mut message = message.trim_end_matches(REQUEST_STAYS).to_owned();
    if asks_to_close_now(shoot) {
        message.push_str(REQUEST_STAYS);
    }
    message
}

/// Whether the failover that is asked for was refused for a reason that can pass.
#[must_use]
pub(crate) fn is_refused(shoot: &Shoot) -> bool {
    let zone = asked_zone(shoot);
    let failed = recorded(shoot).is_some_and(|recorded| {
        Some(recorded.isolated_zone_id.as_str()) == zone
            && (recorded.phase, recorded.status) == (Phase::Failover, Status::Failed)
    });
    failed && condition(shoot).is_some_and(|condition| PASSING.contains(&condition.reason.as_str()))
}

/// Pause between two reconciliations while machines in other zones are not ready. `None`: the usual pause.
#[must_use]
pub(crate) fn period(shoot: &Shoot, now: Timestamp) -> Option<Duration> {
    let condition = condition(shoot)?;
    (condition.reason == OTHER_ZONES_NOT_READY).then(|| period_since(condition, now))
}

/// Pause between two checks of a failover that was refused for a passing reason.
#[must_use]
pub(crate) fn period_of_refusal(shoot: &Shoot, now: Timestamp) -> Option<Duration> {
    let condition = condition(shoot)?;
    is_refused(shoot).then(|| period_since(condition, now))
}

fn period_since(condition: &Condition, now: Timestamp) -> Duration {
    let age = now.duration_since(condition.last_transition_time.0);
    if age < URGENT { SOON } else { LATER }
}

fn condition(shoot: &Shoot) -> Option<&Condition> {
    find_condition(&shoot.status.as_ref()?.conditions, ZONE_ISOLATION)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn shoot(status: &str, reason: &str) -> Shoot {
        let since = "2026-01-01T00:00:00Z";
        serde_json::from_value(json!({
            "metadata": {"name": "demo", "annotations": {"shoot.gardener.cloud/isolated-zone": "z"}},
            "spec": {"region": "r", "provider": {"type": "metal"}},
            "status": {
                "zoneIsolation": {"isolatedZoneID": "z", "phase": "Failover", "status": status, "lastUpdateTime": since},
                "conditions": [{
                    "type": "ZoneIsolation", "status": "False", "reason": reason, "message": "",
                    "lastTransitionTime": since, "lastUpdateTime": since,
                }],
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_refusal_asks_for_no_reconciliation_that_the_gardenlet_begins_by_itself() {
        for (reason, expected) in [
            (
                "NodesUnknown",
                "No. The gardenlet checks again by itself, each minute for 10 minutes, then every 10 minutes.",
            ),
            ("NoOtherZone", "No."),
        ] {
            let refusal = IsolationRefusal {
                reason,
                message: "No.".into(),
            };
            let message = refusal_message(&shoot("InProgress", ""), &refusal);
            assert_eq!(message, expected);
        }
    }

    #[test]
    fn a_refusal_that_can_pass_is_checked_again_by_itself() {
        let at = |time: &str| -> Timestamp { format!("2026-01-01T{time}Z").parse().unwrap() };
        for (status, reason, time, expected) in [
            ("Failed", "NodesUnknown", "00:00:30", Some(SOON)),
            ("Failed", "NoNodeElsewhere", "00:09:59", Some(SOON)),
            ("Failed", "ControlPlaneInZone", "00:10:00", Some(LATER)),
            ("Failed", "NoOtherZone", "00:00:30", None),
            ("Failed", "FailoverFailed", "00:00:30", None),
            ("InProgress", "NodesUnknown", "00:00:30", None),
            ("Done", "ZoneIsolated", "00:00:30", None),
            ("Done", OTHER_ZONES_NOT_READY, "00:00:30", Some(SOON)),
        ] {
            let shoot = shoot(status, reason);
            let (reconciled, checked) = (period(&shoot, at(time)), period_of_refusal(&shoot, at(time)));
            assert_eq!(reconciled.or(checked), expected, "{status} {reason}");
            assert!(reconciled.is_none() || checked.is_none(), "{status} {reason}");
            assert_eq!(reconciled.is_some(), reason == OTHER_ZONES_NOT_READY);
        }
        let mut cancelled = shoot("Failed", "NodesUnknown");
        cancelled.metadata.annotations = None;
        assert!(!is_refused(&cancelled));
    }
}
