//! The budget of a failover: the time limit for closing the network of the isolated zone, even with remaining
//! machines in the zone (RZ-32). Pure.

use std::time::Duration;

use api::{
    constants::ISOLATED_ZONE_CLOSE_DEADLINE,
    machine::{MachineDeployment, labels},
};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;

use super::isolation::{Begun, DRAIN_WITHIN};

/// The whole budget, where no gardenlet has recorded a deadline.
pub const CLOSE_WITHIN: SignedDuration = SignedDuration::from_mins(15);

/// The end of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CloseDeadline(Timestamp);

impl CloseDeadline {
    /// The deadline that the gardenlet has recorded on the object. An annotation that is not a time counts as
    /// absent: the zone is closed later then, never sooner.
    #[must_use]
    pub fn read(object: &impl ResourceExt) -> Option<Self> {
        let recorded = object.annotations().get(ISOLATED_ZONE_CLOSE_DEADLINE)?;
        recorded.parse().ok().map(Self)
    }

    /// The deadline of a failover that has begun at this time.
    #[must_use]
    pub fn of_begin(begin: Timestamp) -> Self {
        Self(begin + CLOSE_WITHIN)
    }

    /// The deadline that follows from the deployments of the zone, also from those that terminate. `None`
    /// where no deployment is left.
    #[must_use]
    pub fn of_deployments(deployments: &[MachineDeployment], zone: &str) -> Option<Self> {
        let in_zone = deployments
            .iter()
            .filter(|deployment| deployment.labels().get(labels::ZONE).is_some_and(|of| of == zone));
        let begins = in_zone.filter_map(|deployment| Some(Begun::recorded(deployment)?.since));
        begins.min().map(Self::of_begin)
    }

    /// The time of the deadline, in whole seconds.
    #[must_use]
    pub fn time(self) -> Timestamp {
        Timestamp::from_second(self.0.as_second()).unwrap_or(self.0)
    }

    /// The rest of the budget.
    #[must_use]
    pub fn remaining(self, now: Timestamp) -> Duration {
        self.0
            .duration_since(now)
            .max(SignedDuration::ZERO)
            .unsigned_abs()
    }

    /// Whether the budget is spent.
    #[must_use]
    pub fn has_passed(self, now: Timestamp) -> bool {
        now >= self.0
    }

    /// Whether machines elsewhere may be awaited still: pods that leave the zone get the last
    /// [`DRAIN_WITHIN`] of the budget.
    #[must_use]
    pub fn allows_growth(self, now: Timestamp) -> bool {
        self.remaining(now) > DRAIN_WITHIN
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::extensions::Worker;
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn worker(deadline: Option<&str>) -> Worker {
        let mut worker = Worker::default();
        let annotation = deadline.map(|text| (ISOLATED_ZONE_CLOSE_DEADLINE.to_owned(), text.to_owned()));
        worker.annotations_mut().extend(annotation);
        worker
    }

    #[test]
    fn a_deadline_is_read_from_the_object() {
        for (annotation, expected) in [
            (None, None),
            (Some("soon"), None),
            (Some("1970-01-01T00:15:00Z"), Some(CloseDeadline(at(900)))),
        ] {
            assert_eq!(CloseDeadline::read(&worker(annotation)), expected);
        }
    }

    #[test]
    fn pods_have_the_last_ten_minutes_of_the_budget() {
        let deadline = CloseDeadline::of_begin(at(0));
        for (now, allows_growth, has_passed, left) in [
            (0, true, false, 900),
            (299, true, false, 601),
            (300, false, false, 600),
            (899, false, false, 1),
            (900, false, true, 0),
            (9000, false, true, 0),
        ] {
            assert_eq!(deadline.allows_growth(at(now)), allows_growth, "{now}");
            assert_eq!(deadline.has_passed(at(now)), has_passed, "{now}");
            assert_eq!(deadline.remaining(at(now)), Duration::from_secs(left), "{now}");
        }
    }

    #[test]
    fn a_deployment_that_terminates_has_its_deadline() {
        let deployment = |zone: &str, since: Option<&str>| -> MachineDeployment {
            let begun = since.map(|since| json!({"since": since, "machines": 1}).to_string());
            let annotations = json!({"worker.gardener.cloud/isolation": begun});
            serde_json::from_value(json!({
                "metadata": {
                    "name": "d", "labels": {(labels::ZONE): zone}, "deletionTimestamp": "1970-01-01T00:01:00Z",
                    "annotations": begun.is_some().then_some(annotations),
                },
                "spec": {"template": {}},
            }))
            .unwrap()
        };
        let all = [
            deployment("y", Some("1970-01-01T00:00:00Z")),
            deployment("x", None),
            deployment("x", Some("1970-01-01T00:00:40Z")),
            deployment("x", Some("1970-01-01T00:00:20Z")),
        ];
        let deadline = CloseDeadline::of_deployments(&all, "x");
        assert_eq!(deadline, Some(CloseDeadline::of_begin(at(20))));
        assert_eq!(CloseDeadline::of_deployments(&all[..2], "x"), None);
    }
}
