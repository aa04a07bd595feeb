//! Events and metrics about zones that are isolated and used again: an Event for each change of
//! `status.zoneIsolation`.

use std::sync::OnceLock;

use api::{
    constants::condition::ZONE_ISOLATION,
    gardencore::{
        Shoot,
        shoot::{ZoneIsolation, ZoneIsolationPhase as Phase, ZoneIsolationStatus as Status},
    },
    meta::find_condition,
};
use jiff::Timestamp;
use kube::runtime::reflector::Store;
use placement::{Role, role};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
};
use runtime::process::metrics::{Metrics, ScrapedSeries};

use crate::context::Context;

/// Labels of a counted change. Two phases and five statuses, independent of the number of shoots.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Change {
    phase: String,
    status: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Ended {
    phase: String,
}

struct Meters {
    changes: Family<Change, Counter>,
    durations: Family<Ended, Histogram>,
}

/// The metrics of the process. A restarted controller continues the same metrics.
fn meters(metrics: &Metrics) -> &'static Meters {
    static METERS: OnceLock<Meters> = OnceLock::new();
    METERS.get_or_init(|| {
        let meters = Meters {
            changes: Family::default(),
            // From a zone without machines, to a zone whose pods use their full grace period.
            durations: Family::new_with_constructor(|| {
                Histogram::new([5.0, 15.0, 60.0, 180.0, 600.0, 1200.0, 2400.0, 7200.0])
            }),
        };
        metrics.register(|registry| {
            registry.register(
                "shoot_zone_isolation_changes",
                "Changes of the phase or status of a zone that is cut off or taken back",
                meters.changes.clone(),
            );
            registry.register(
                "shoot_zone_isolation_duration_seconds",
                "Seconds from the first begin of the reconciliation that cut a zone off, or took one back, to its end",
                meters.durations.clone(),
            );
        });
        meters
    })
}

/// Reports a change of the zone after a write of the status. Without a change of the zone, nothing happens.
pub(crate) async fn report_change(context: &Context, before: &Shoot, after: &Shoot) {
    let (old, Some(new)) = (isolation(before), isolation(after)) else {
        return;
    };
    let is_reported = old.is_some_and(|old| {
        (&old.isolated_zone_id, old.phase, old.status) == (&new.isolated_zone_id, new.phase, new.status)
    });
    if is_reported {
        return;
    }
    let meters = meters(&context.metrics);
    let [phase, status] = words(new);
    meters
        .changes
        .get_or_create(&Change {
            phase: phase.clone(),
            status,
        })
        .inc();
    if let Some(seconds) = duration(before, new) {
        meters.durations.get_or_create(&Ended { phase }).observe(seconds);
    }
    let condition = after
        .status
        .as_ref()
        .and_then(|status| find_condition(&status.conditions, ZONE_ISOLATION));
    let Some(condition) = condition else {
        return;
    };
    let events = &context.garden_events;
    match new.status {
        Status::Failed => events.warning(after, &condition.reason, &condition.message).await,
        _ => events.normal(after, reason(new), &condition.message).await,
    }
}

/// Registers metric `shoot_zone_isolation` over the cache of all Shoots. The series of a Shoot ends when the
/// failback is done, when the Shoot leaves the seed, and when the Shoot is gone.
pub(crate) fn register(metrics: &Metrics, seed: &str, shoots: &Store<Shoot>) {
    let (seed, shoots) = (seed.to_owned(), shoots.clone());
    metrics.register_scraped(
        "shoot_zone_isolation",
        "1 for each shoot a zone of which is cut off, or on its way there or back",
        move || {
            let all = shoots.state();
            all.iter().filter_map(|shoot| series(shoot, &seed)).collect()
        },
    );
}

/// The series of a Shoot of this seed. A Shoot has at most a single series.
fn series(shoot: &Shoot, seed: &str) -> Option<ScrapedSeries> {
    let is_own = role(shoot, seed) == Role::Owner;
    let recorded = isolation(shoot).filter(|recorded| is_own && !recorded.is_over())?;
    let [phase, status] = words(recorded);
    let labels = [("phase", phase.as_str()), ("status", status.as_str())];
    Some(ScrapedSeries::of_object(shoot, labels, 1.0))
}

fn isolation(shoot: &Shoot) -> Option<&ZoneIsolation> {
    shoot.status.as_ref()?.zone_isolation.as_ref()
}

fn words(recorded: &ZoneIsolation) -> [String; 2] {
    [format!("{:?}", recorded.phase), format!("{:?}", recorded.status)]
}

/// The duration of a failover or failback; `None` unless the phase is done. A refusal has no duration.
fn duration(before: &Shoot, new: &ZoneIsolation) -> Option<f64> {
    let began: Timestamp = before.status.as_ref()?.retry_cycle_start_time.as_ref()?.0;
    let seconds = new.last_update_time.0.duration_since(began).as_secs_f64();
    (new.status == Status::Done && seconds >= 0.0).then_some(seconds)
}

fn reason(recorded: &ZoneIsolation) -> &'static str {
    match (recorded.phase, recorded.status) {
        (Phase::Failover, Status::Pending) => "ZoneFailoverPending",
        (Phase::Failover, Status::InProgress) => "ZoneFailoverBegun",
        (Phase::Failover, Status::Aborting) => "ZoneFailoverAborting",
        (Phase::Failover, Status::Done) => "ZoneIsolated",
        (Phase::Failover, Status::Failed) => "ZoneFailoverFailed",
        (Phase::Failback, Status::Pending) => "ZoneFailbackPending",
        (Phase::Failback, Status::InProgress) => "ZoneFailbackBegun",
        (Phase::Failback, Status::Aborting) => "ZoneFailbackAborting",
        (Phase::Failback, Status::Done) => "ZoneIsBack",
        (Phase::Failback, Status::Failed) => "ZoneFailbackFailed",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn shoot(status: &str) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "demo", "namespace": "garden-dev"},
            "spec": {"region": "r", "provider": {"type": "metal"}},
            "status": {"retryCycleStartTime": "2026-01-01T00:00:00Z", "zoneIsolation": {
                "isolatedZoneID": "z", "phase": "Failover", "status": status, "lastUpdateTime": "2026-01-01T00:01:30Z"}},
        }))
        .unwrap()
    }

    #[test]
    fn the_time_of_what_is_done_is_measured() {
        let (begun, done, failed) = (shoot("InProgress"), shoot("Done"), shoot("Failed"));
        assert_eq!(duration(&begun, isolation(&done).unwrap()), Some(90.0));
        assert_eq!(duration(&begun, isolation(&failed).unwrap()), None);
    }

    /// After a takeover or a move, the seed that the shoot has left has no series.
    #[test]
    fn a_shoot_has_a_series_in_its_own_seed_until_the_failback() {
        let of_seed = |status: &str, host: &str| {
            let mut shoot = shoot(status);
            shoot.spec.seed_name = Some(host.to_owned());
            shoot.status.as_mut().unwrap().seed_name = Some(host.to_owned());
            shoot
        };
        for status in ["InProgress", "Done", "Failed"] {
            let shown = series(&of_seed(status, "a"), "a").unwrap();
            let labels: Vec<_> = shown.labels.iter().map(|(_, label)| label.as_str()).collect();
            assert_eq!(labels, ["garden-dev", "demo", "Failover", status]);
            assert!(series(&of_seed(status, "b"), "a").is_none());
        }
        let mut back = of_seed("Done", "a");
        let recorded = back.status.as_mut().unwrap().zone_isolation.as_mut().unwrap();
        recorded.phase = Phase::Failback;
        assert!(series(&back, "a").is_none());
        assert_eq!(
            reason(isolation(&shoot("InProgress")).unwrap()),
            "ZoneFailoverBegun"
        );
    }
}
