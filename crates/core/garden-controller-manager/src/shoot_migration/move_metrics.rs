//! Wanted moves, takeovers and former seeds of all Shoots as metrics. garden-controller-manager reports these
//! metrics, so that a move off a dead seed is visible.

use api::gardencore::Shoot;
use kube::runtime::reflector::Store;
use runtime::process::metrics::{Metrics, ScrapedSeries};

use super::{former_seeds, preflight::wanted_move};

/// Reads the series of a Shoot.
type Read = fn(&Shoot) -> Vec<ScrapedSeries>;

/// Registers the metrics over the cache of all Shoots.
pub(super) fn register(metrics: &Metrics, shoots: &Store<Shoot>) {
    let gauges: [(&'static str, &'static str, Read); 3] = [
        (
            "shoot_move_wanted",
            "1 while the seed that is wanted for a Shoot is not the seed that hosts the Shoot",
            wanted,
        ),
        (
            "shoot_takeover_running",
            "1 from the write that gives a Shoot to a seed without the former seed until etcd is opened",
            takeover,
        ),
        (
            "shoot_former_seed",
            "1 while a seed that a Shoot has left is not clean",
            former,
        ),
    ];
    for (name, help, read) in gauges {
        let shoots = shoots.clone();
        metrics.register_scraped(name, help, move || {
            shoots.state().iter().flat_map(|shoot| read(shoot)).collect()
        });
    }
}

fn wanted(shoot: &Shoot) -> Vec<ScrapedSeries> {
    let series = wanted_move(shoot).map(|(from, to)| between(shoot, from, to));
    series.into_iter().collect()
}

/// The takeover that began the present ownership epoch, until the seed has opened the data.
fn takeover(shoot: &Shoot) -> Vec<ScrapedSeries> {
    let status = shoot.status.as_ref();
    let ownership = status.and_then(|status| status.ownership.as_ref());
    let approval = ownership.and_then(|ownership| {
        let approval = ownership.approval.as_ref()?;
        (approval.epoch + 1 == ownership.epoch).then_some(approval)
    });
    let running = approval.filter(|_| placement::is_claimed(shoot));
    let series = running.map(|approval| between(shoot, &approval.from, &approval.to));
    series.into_iter().collect()
}

fn former(shoot: &Shoot) -> Vec<ScrapedSeries> {
    let entries = former_seeds::entries(shoot).iter();
    let series = entries.map(|former| ScrapedSeries::of_object(shoot, [("seed", former.name.as_str())], 1.0));
    series.collect()
}

fn between(shoot: &Shoot, from: &str, to: &str) -> ScrapedSeries {
    ScrapedSeries::of_object(shoot, [("from", from), ("to", to)], 1.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn shoot(wanted: &str, status: &Value) -> Shoot {
        serde_json::from_value(json!({
            "metadata": {"name": "demo", "namespace": "garden-dev"},
            "spec": {"seedName": wanted, "region": "r", "provider": {"type": "t"}, "kubernetes": {}},
            "status": status,
        }))
        .unwrap()
    }

    fn from_a_to_b() -> Vec<ScrapedSeries> {
        let labels = [
            ("namespace", "garden-dev"),
            ("name", "demo"),
            ("from", "a"),
            ("to", "b"),
        ];
        vec![ScrapedSeries::new(labels, 1.0)]
    }

    #[test]
    fn a_move_has_a_series_until_the_hand_over() {
        assert_eq!(wanted(&shoot("b", &json!({"seedName": "a"}))), from_a_to_b());
        assert!(wanted(&shoot("b", &json!({"seedName": "b"}))).is_empty());
    }

    #[test]
    fn a_takeover_has_a_series_until_etcd_is_opened() {
        let approval = json!({"uid": "u", "from": "a", "to": "b", "epoch": 4, "by": "Operator", "reason": "r",
            "acceptedLoss": "SinceLastSnapshot", "expiry": "2026-01-01T00:00:00Z"});
        let in_phase = |epoch: i64, phase: &str| {
            let ownership = json!({"epoch": epoch, "phase": phase, "approval": approval});
            takeover(&shoot("b", &json!({"seedName": "b", "ownership": ownership})))
        };
        assert_eq!(in_phase(5, "Claiming"), from_a_to_b());
        assert_eq!(in_phase(5, "Opening"), from_a_to_b());
        assert!(in_phase(5, "Held").is_empty());
        // A later hand-over is no takeover, although the approval is still recorded.
        assert!(in_phase(6, "Claiming").is_empty());
    }

    #[test]
    fn each_former_seed_has_a_series() {
        let seeds = json!([{"name": "a", "epoch": 1}, {"name": "b", "epoch": 2}]);
        let status = json!({"seedName": "c", "formerSeeds": seeds});
        let seeds: Vec<_> = former(&shoot("c", &status))
            .into_iter()
            .map(|series| series.labels[2].1.clone())
            .collect();
        assert_eq!(seeds, ["a", "b"]);
    }
}
