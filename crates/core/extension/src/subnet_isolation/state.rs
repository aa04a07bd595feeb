//! The recorded state of a closed zone, in `status.state`: the state moves with the shoot. Pure.

use std::{collections::BTreeSet, time::Duration};

use api::{
    extensions::NETWORK_CLOSED,
    meta::{ErrorCode, RawExtension},
};
use jiff::Timestamp;
use runtime::{Error, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{Outcome, worker::close_deadline::CloseDeadline};

/// The recorded state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct State<B> {
    /// The account's name of the zone.
    pub zone: String,
    /// The begin of the wait for the machines of the zone.
    pub since: Timestamp,
    /// The state of the network before the first change. `None`: no change was made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<B>,
}

impl<B: Serialize> State<B> {
    /// The recorded state, or a new state.
    ///
    /// # Errors
    /// The ID resolved to a different zone before: two zones would be closed.
    pub fn for_zone(told: Option<Self>, zone: &str, now: Timestamp) -> Result<Self> {
        let Some(told) = told else {
            return Ok(Self {
                zone: zone.to_owned(),
                since: now,
                before: None,
            });
        };
        if told.zone != zone {
            return Err(Error::config(
                ErrorCode::ErrConfigurationProblem,
                format!(
                    "zone {} is closed, and its ID now belongs to zone {zone}: two zones are never closed at a time. Take the \
                     annotation shoot.gardener.cloud/isolated-zone away, which opens {}, and set it again",
                    told.zone, told.zone
                ),
            ));
        }
        Ok(Self {
            // A clock that was ahead must not extend the wait.
            since: told.since.min(now),
            ..told
        })
    }

    /// The latest time for closing the network: the deadline of the gardenlet, or counted from the first
    /// reconciliation.
    #[must_use]
    pub fn deadline(&self, recorded: Option<CloseDeadline>) -> CloseDeadline {
        recorded.unwrap_or_else(|| CloseDeadline::of_begin(self.since))
    }

    /// The remaining wait for machines. Zero once the network was closed: a partly open network is closed
    /// immediately.
    #[must_use]
    pub fn patience(&self, deadline: CloseDeadline, now: Timestamp) -> Duration {
        if self.before.is_some() {
            return Duration::ZERO;
        }
        deadline.remaining(now)
    }

    /// The outcome for the object's status. `more`: the provider's report of the closed network.
    ///
    /// # Errors
    /// The former state does not serialise: a bug of the provider.
    pub fn outcome(&self, api_version: &str, more: Map<String, Value>) -> Result<Outcome> {
        let encoded = serde_json::to_value(self)
            .map_err(|error| Error::bug("the state of a closed zone does not serialise").caused_by(error))?;
        let mut told = more;
        if let Some(before) = encoded.get("before") {
            told.insert("before".into(), before.clone());
        }
        told.insert("apiVersion".into(), json!(api_version));
        told.insert("kind".into(), json!("SubnetIsolationStatus"));
        told.insert("isolatedZoneCode".into(), json!(self.zone));
        Ok(Outcome {
            state: Some(RawExtension(encoded)),
            provider_status: Some(RawExtension(Value::Object(told))),
            ..Outcome::none()
        })
    }
}

/// The provider's former report without the confirmation of a closed network; `None` if the report had no
/// confirmation.
#[must_use]
pub fn unconfirmed(report: Option<&RawExtension>) -> Option<Map<String, Value>> {
    let mut report = report?.0.as_object().cloned()?;
    if report.get(NETWORK_CLOSED) != Some(&Value::Bool(true)) {
        return None;
    }
    report.insert(NETWORK_CLOSED.to_owned(), Value::Bool(false));
    Some(report)
}

/// Zones of the worker pools of a Shoot.
#[must_use]
pub fn zones_of(shoot: &Value) -> BTreeSet<&str> {
    let pools = shoot.pointer("/spec/provider/workers").and_then(Value::as_array);
    let zones = pools
        .into_iter()
        .flatten()
        .filter_map(|pool| pool.get("zones")?.as_array());
    zones.flatten().filter_map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn state(zone: &str, since: i64, before: Option<&str>) -> State<String> {
        State {
            zone: zone.into(),
            since: at(since),
            before: before.map(str::to_owned),
        }
    }

    #[test]
    fn what_is_remembered_survives_and_a_clock_ahead_does_not() {
        for (told, is) in [
            (None, state("a", 100, None)),
            (Some(state("a", 40, None)), state("a", 40, None)),
            (Some(state("a", 900, Some("x"))), state("a", 100, Some("x"))),
        ] {
            assert_eq!(State::for_zone(told, "a", at(100)).unwrap(), is);
        }
    }

    #[test]
    fn never_are_two_zones_closed() {
        let error = State::for_zone(Some(state("a", 1, Some("x"))), "b", at(2)).unwrap_err();
        assert_eq!(error.codes(), [ErrorCode::ErrConfigurationProblem]);
        let said = error.to_string();
        assert!(
            said.contains("zone a is closed") && said.contains("zone b"),
            "{said}"
        );
    }

    #[test]
    fn a_shoot_uses_the_zones_of_its_pools() {
        let pools = json!([{"zones": ["b", "a"]}, {"zones": ["a"]}, {"name": "none"}]);
        let shoot = json!({"spec": {"provider": {"workers": pools}}});
        assert_eq!(zones_of(&shoot).into_iter().collect::<Vec<_>>(), ["a", "b"]);
        assert!(zones_of(&json!({"status": {}})).is_empty());
    }

    #[test]
    fn machines_are_waited_for_once_and_not_for_ever() {
        let recorded = CloseDeadline::of_begin(at(40));
        for (recorded, before, now, seconds) in [
            (None, None, 100, 900),
            (None, None, 999, 1),
            (None, None, 1000, 0),
            (None, None, 9000, 0),
            (None, Some("x"), 101, 0),
            // The failover has begun before this object was made.
            (Some(recorded), None, 100, 840),
            (Some(recorded), None, 940, 0),
        ] {
            let state = state("a", 100, before);
            let patience = state.patience(state.deadline(recorded), at(now));
            assert_eq!(
                patience,
                Duration::from_secs(seconds),
                "{recorded:?} {before:?} {now}"
            );
        }
    }

    #[test]
    fn a_network_that_is_not_confirmed_any_more_does_not_count_as_closed() {
        for (report, expected) in [
            (None, None),
            (Some(json!({"aclID": "acl-1"})), None),
            (Some(json!({"networkClosed": false})), None),
            (
                Some(json!({"networkClosed": true, "aclID": "acl-1"})),
                Some(json!({"networkClosed": false, "aclID": "acl-1"})),
            ),
        ] {
            let report = report.map(RawExtension);
            let found = unconfirmed(report.as_ref()).map(Value::Object);
            assert_eq!(found, expected, "{report:?}");
        }
    }

    #[test]
    fn the_status_shows_what_was_there_and_a_provider_cannot_take_its_place() {
        let more = json!({"aclID": "acl-1", "isolatedZoneCode": "other", "before": "other"});
        let more = more.as_object().cloned().unwrap();
        let outcome = state("a", 0, Some("x")).outcome("g/v1", more).unwrap();
        let told = json!({
            "apiVersion": "g/v1", "kind": "SubnetIsolationStatus", "isolatedZoneCode": "a", "before": "x", "aclID": "acl-1",
        });
        assert_eq!(outcome.provider_status.unwrap().0, told);
        let kept = json!({"zone": "a", "since": "1970-01-01T00:00:00Z", "before": "x"});
        let kept_in = outcome.state.unwrap();
        assert_eq!(kept_in.0, kept);
        assert_eq!(
            kept_in.decode::<State<String>>().unwrap(),
            state("a", 0, Some("x"))
        );
        let begun = state("a", 0, None).outcome("g/v1", Map::new()).unwrap();
        assert_eq!(
            begun.state.unwrap().0,
            json!({"zone": "a", "since": "1970-01-01T00:00:00Z"})
        );
    }
}
