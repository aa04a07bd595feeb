//! The conditions of all Seeds as a metric. The metrics of a dead seed end with the seed; these series stay.

use std::sync::Arc;

use api::gardencore::Seed;
use kube::{ResourceExt as _, runtime::reflector::Store};
use runtime::process::metrics::{Metrics, ScrapedSeries};

/// Registers the metric over the cache of all Seeds.
pub(super) fn register(metrics: &Metrics, seeds: Store<Seed>) {
    let help = "1 for the present status of each condition of a Seed";
    metrics.register_scraped("seed_condition", help, move || series(&seeds.state()));
}

/// A series for each condition of each Seed.
fn series(seeds: &[Arc<Seed>]) -> Vec<ScrapedSeries> {
    let mut all = Vec::new();
    for seed in seeds {
        let name = seed.name_any();
        for condition in seed.status.iter().flat_map(|status| &status.conditions) {
            let status = format!("{:?}", condition.status);
            let labels = [
                ("seed", name.as_str()),
                ("condition", condition.type_.as_str()),
                ("status", status.as_str()),
            ];
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
}
