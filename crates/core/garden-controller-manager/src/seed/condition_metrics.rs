//! The conditions of all Seeds as a metric. The metrics of a dead seed end with the seed; these series stay.

use std::sync::Arc;

use api::gardencore::Seed;
use kube::{ResourceExt as _, runtime::reflector::Store};
use runtime::process::{
    condition_metrics::condition_labels,
    metrics::{Metrics, ScrapedSeries},
};

/// Registers the metric over the cache of all Seeds.
pub(super) fn register(metrics: &Metrics, seeds: Store<Seed>) {
    let help = "1 for the present status of each condition of a Seed";
    metrics.register_scraped("seed_condition", help, move || series(&seeds.state()));
}

/// A series for each condition of each Seed. The type comes from the seed, so the values of the label are a
/// fixed set.
fn series(seeds: &[Arc<Seed>]) -> Vec<ScrapedSeries> {
    let mut all = Vec::new();
    for seed in seeds {
        let name = seed.name_any();
        let conditions = seed.status.iter().flat_map(|status| &status.conditions);
        for [condition, status] in condition_labels(conditions) {
            let labels = [("seed", name.as_str()), condition, status];
            all.push(ScrapedSeries::new(labels, 1.0));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use api::gardencore::SeedSpec;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_seed_whose_gardenlet_is_silent_has_a_series() {
        let mut seed = Seed::new("seed-a", SeedSpec::default());
        seed.status = serde_json::from_value(json!({"conditions": [{
            "type": "GardenletReady", "status": "Unknown", "reason": "SeedStatusUnknown", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z",
        }]}))
        .unwrap();
        let labels = [
            ("seed", "seed-a"),
            ("condition", "GardenletReady"),
            ("status", "Unknown"),
        ];
        assert_eq!(
            series(&[Arc::new(seed), Arc::new(Seed::new("seed-b", SeedSpec::default()))]),
            [ScrapedSeries::new(labels, 1.0)]
        );
    }

    #[test]
    fn types_that_a_seed_invents_are_no_values_of_the_label() {
        let mut seed = Seed::new("seed-a", SeedSpec::default());
        let conditions: Vec<_> = (0..100)
            .map(|number| {
                json!({"type": format!("Invented{number}"), "status": "False", "reason": "R", "message": "m",
                    "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"})
            })
            .collect();
        seed.status = serde_json::from_value(json!({"conditions": conditions})).unwrap();
        let labels = [("seed", "seed-a"), ("condition", "other"), ("status", "False")];
        assert_eq!(series(&[Arc::new(seed)]), [ScrapedSeries::new(labels, 1.0)]);
    }
}
