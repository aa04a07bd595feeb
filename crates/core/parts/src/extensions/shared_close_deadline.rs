//! The time by which the network of the isolated zone is closed, as known to the running flow. A user can
//! spend the rest of the budget while the flow runs.

use std::sync::Arc;

use api::{
    constants::ISOLATED_ZONE_CLOSE_DEADLINE,
    gardencore::{
        Shoot,
        shoot::{ZoneIsolationPhase as Phase, ZoneIsolationStatus as Status},
    },
};
use jiff::Timestamp;
use kube::ResourceExt;
use placement::isolation::recorded;
use tokio::sync::watch;

/// The deadline of the failover that is under way. Clones share the deadline.
#[derive(Clone, Debug)]
pub struct SharedCloseDeadline(Arc<watch::Sender<Option<Timestamp>>>);

impl SharedCloseDeadline {
    /// The deadline in the Shoot's status. `None` without a failover in progress. An isolated zone that is
    /// closed and empty has no deadline, so that the Worker waits for the machines of the remaining zones as
    /// usual.
    #[must_use]
    pub fn recorded(shoot: &Shoot) -> Self {
        let under_way =
            recorded(shoot).filter(|zone| (zone.phase, zone.status) == (Phase::Failover, Status::InProgress));
        let deadline = under_way.and_then(|zone| Some(zone.close_deadline_time.as_ref()?.0));
        Self(Arc::new(watch::Sender::new(deadline)))
    }

    /// Sets the deadline of all clones.
    pub fn set(&self, deadline: Option<Timestamp>) {
        self.0.send_replace(deadline);
    }

    /// Copies the deadline of `other`.
    pub fn adopt(&self, other: &Self) {
        self.set(*other.0.borrow());
    }

    /// The annotation's value for extension objects.
    pub(crate) fn annotation(&self) -> Option<String> {
        self.0.borrow().map(|deadline| deadline.to_string())
    }

    /// Writes the annotation on an extension object.
    pub(crate) fn annotate(&self, object: &mut impl ResourceExt) {
        if let Some(deadline) = self.annotation() {
            let annotations = object.annotations_mut();
            annotations.insert(ISOLATED_ZONE_CLOSE_DEADLINE.to_owned(), deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn shoot(phase: &str, status: &str) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "demo"}, "spec": {"region": "r", "provider": {"type": "metal"}},
            "status": {"zoneIsolation": {
                "isolatedZoneID": "z", "phase": phase, "status": status, "lastUpdateTime": "2026-01-01T00:00:00Z",
                "closeDeadlineTime": "2026-01-01T00:15:00Z",
            }},
        }))
        .unwrap()
    }

    #[test]
    fn only_a_failover_that_is_under_way_has_a_deadline() {
        for (phase, status, expected) in [
            ("Failover", "InProgress", Some("2026-01-01T00:15:00Z")),
            ("Failover", "Done", None),
            ("Failover", "Aborting", None),
            ("Failback", "InProgress", None),
        ] {
            let deadline = SharedCloseDeadline::recorded(&shoot(phase, status)).annotation();
            assert_eq!(deadline.as_deref(), expected, "{phase} {status}");
        }
    }
}
