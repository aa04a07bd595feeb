//! State and age of operations, conditions, and the end of certificates of the Shoots of this seed as
//! metrics. The series of a Shoot end when the Shoot leaves the seed or is gone.

use api::{gardencore::Shoot, meta::LastOperationState as State};
use jiff::Timestamp;
use kube::runtime::reflector::Store;
use parts::secrets::{first_expiry, forget_first_expiry};
use placement::{Role, names::recorded_technical_id, role};
use runtime::{
    clock,
    process::{
        condition_metrics::condition_labels,
        metrics::{Metrics, ScrapedSeries},
    },
};

/// Reads the series of a Shoot at a time.
type Read = fn(&Shoot, Timestamp) -> Vec<ScrapedSeries>;

/// Registers the metrics over the cache of all Shoots.
pub(crate) fn register(metrics: &Metrics, seed: &str, shoots: &Store<Shoot>) {
    let gauges: [(&'static str, &'static str, Read); 4] = [
        (
            "shoot_operation_state",
            "1 for type and state of the last operation of a Shoot",
            state,
        ),
        (
            "shoot_operation_age_seconds",
            "Seconds since the first attempt of an operation that has not ended",
            age,
        ),
        (
            "shoot_condition",
            "1 for the present status of each condition and constraint of a Shoot",
            conditions,
        ),
        (
            "shoot_certificate_expiration_timestamp_seconds",
            "Unix time at which the first certificate of the control plane expires, and the Secret",
            certificate,
        ),
    ];
    for (name, help, read) in gauges {
        let (seed, shoots) = (seed.to_owned(), shoots.clone());
        metrics.register_scraped(name, help, move || {
            let (all, now) = (shoots.state(), clock::now());
            let own = all.iter().filter(|shoot| role(shoot, &seed) == Role::Owner);
            own.flat_map(|shoot| read(shoot, now)).collect()
        });
    }
}

/// Drops the values of a shoot that is gone, or that the seed leaves.
pub(crate) fn forget(shoot: &Shoot) {
    if let Some(namespace) = recorded_technical_id(shoot) {
        forget_first_expiry(namespace);
    }
}

fn state(shoot: &Shoot, _: Timestamp) -> Vec<ScrapedSeries> {
    let status = shoot.status.as_ref();
    let Some(last) = status.and_then(|status| status.last_operation.as_ref()) else {
        return Vec::new();
    };
    let (type_, state) = (last.type_.to_string(), last.state.to_string());
    let labels = [("type", type_.as_str()), ("state", state.as_str())];
    vec![ScrapedSeries::of_object(shoot, labels, 1.0)]
}

/// An operation with state `Failed` is not repeated, and thus has no age.
fn age(shoot: &Shoot, now: Timestamp) -> Vec<ScrapedSeries> {
    let status = shoot.status.as_ref();
    let last = status.and_then(|status| status.last_operation.as_ref());
    let began = status.and_then(|status| status.retry_cycle_start_time.as_ref());
    let (Some(last), Some(began)) = (last, began) else {
        return Vec::new();
    };
    if matches!(last.state, State::Succeeded | State::Failed) {
        return Vec::new();
    }
    let seconds = now.duration_since(began.0).as_secs_f64().max(0.0);
    let type_ = last.type_.to_string();
    vec![ScrapedSeries::of_object(
        shoot,
        [("type", type_.as_str())],
        seconds,
    )]
}

/// A former seed has written conditions, too, so the values of the label are a fixed set.
fn conditions(shoot: &Shoot, _: Timestamp) -> Vec<ScrapedSeries> {
    let Some(status) = &shoot.status else {
        return Vec::new();
    };
    let all = condition_labels(status.conditions.iter().chain(&status.constraints));
    let series = all
        .into_iter()
        .map(|labels| ScrapedSeries::of_object(shoot, labels, 1.0));
    series.collect()
}

/// No series until the gardenlet has reconciled the Shoot once.
fn certificate(shoot: &Shoot, _: Timestamp) -> Vec<ScrapedSeries> {
    let Some(expiry) = recorded_technical_id(shoot).and_then(first_expiry) else {
        return Vec::new();
    };
    #[allow(clippy::cast_precision_loss)] // exact for some million years
    let end = expiry.end.as_second() as f64;
    vec![ScrapedSeries::of_object(shoot, [("secret", expiry.secret)], end)]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn shoot(state: &str) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "demo", "namespace": "garden-dev"},
            "spec": {"region": "r", "provider": {"type": "t"}, "kubernetes": {}},
            "status": {
                "retryCycleStartTime": "2026-01-01T00:00:00Z",
                "lastOperation": {"type": "Migrate", "state": state, "progress": 10, "description": "d",
                    "lastUpdateTime": "2026-01-01T00:01:00Z"},
                "conditions": [condition("EveryNodeReady", "True")],
                "constraints": [condition("DataComplete", "False")],
            },
        }))
        .unwrap()
    }

    fn condition(type_: &str, status: &str) -> Value {
        json!({"type": type_, "status": status, "reason": "R", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"})
    }

    /// The labels after namespace and name, and the value.
    fn shown(all: &[ScrapedSeries]) -> Vec<(Vec<&str>, f64)> {
        all.iter()
            .map(|series| {
                let labels = series.labels[2..].iter();
                (labels.map(|(_, label)| label.as_str()).collect(), series.value)
            })
            .collect()
    }

    #[test]
    fn an_operation_has_an_age_until_the_end() {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        for running in ["Processing", "Error"] {
            let shoot = shoot(running);
            assert_eq!(shown(&age(&shoot, now)), [(vec!["Migrate"], 600.0)]);
            assert_eq!(shown(&state(&shoot, now)), [(vec!["Migrate", running], 1.0)]);
        }
        for ended in ["Succeeded", "Failed"] {
            assert!(age(&shoot(ended), now).is_empty());
        }
    }

    #[test]
    fn a_shoot_that_was_not_reconciled_yet_has_no_certificate() {
        let mut shoot = shoot("Processing");
        shoot.status.as_mut().unwrap().technical_id = "shoot--dev--unknown".to_owned();
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        assert!(certificate(&shoot, now).is_empty());
    }

    #[test]
    fn each_condition_and_constraint_has_a_series() {
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        assert_eq!(
            shown(&conditions(&shoot("Error"), now)),
            [
                (vec!["EveryNodeReady", "True"], 1.0),
                (vec!["DataComplete", "False"], 1.0),
            ]
        );
    }

    #[test]
    fn types_that_a_former_seed_has_invented_are_no_values_of_the_label() {
        let mut shoot = shoot("Error");
        let invented: Vec<_> = (0..100)
            .map(|number| condition(&format!("Invented{number}"), "Unknown"))
            .collect();
        let status = shoot.status.as_mut().unwrap();
        status.constraints = serde_json::from_value(json!(invented)).unwrap();
        let now = "2026-01-01T00:10:00Z".parse().unwrap();
        assert_eq!(
            shown(&conditions(&shoot, now)),
            [
                (vec!["EveryNodeReady", "True"], 1.0),
                (vec!["other", "Unknown"], 1.0),
            ]
        );
    }
}
