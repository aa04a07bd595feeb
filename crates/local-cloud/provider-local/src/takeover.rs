//! The data with which a shoot begins after a takeover without the help of the source
//! (docs/understand/ownership.md, "Without the source").

use api::extensions::Cluster as ClusterObject;
use runtime::{
    Result,
    client::{Cluster, Seed},
};
use serde_json::Value;

/// A shoot that a seed takes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// The epoch whose end is the begin of the new epoch; `None` if the shoot does not name the epoch.
    pub origin: Option<i64>,
    /// The data are in the folder of the seed that takes the shoot over: this seed also had the shoot in that
    /// epoch.
    pub returns: bool,
}

/// The takeover in the epoch of an entry, if any. A fresh read: a process that waits for the claim reads the
/// annotation of the Secret, and requests a new reconcile without the annotation.
pub async fn read_takeover(seed: &Seed, cluster: &str, epoch: i64) -> Result<Option<Takeover>> {
    let found = seed.cluster_wide::<ClusterObject>().get_opt(cluster).await?;
    Ok(found.and_then(|found| parse_takeover(&found.spec.shoot.0, epoch)))
}

fn parse_takeover(shoot: &Value, epoch: i64) -> Option<Takeover> {
    let status = &shoot["status"];
    let record = &status["ownership"];
    let is_claimed = matches!(record["phase"].as_str(), Some("Claiming" | "Opening"))
        && record["drained"] != true
        && record["epoch"] == epoch;
    let source = &record["source"];
    is_claimed.then(|| Takeover {
        origin: source["epoch"].as_i64(),
        returns: source["name"].is_string() && source["name"] == status["seedName"],
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A planned move needs no claim: the source has stopped and reported the stop.
    #[test]
    fn only_a_shoot_that_is_taken_over_without_its_source_is_claimed() {
        let record = |phase: &str, drained: bool| {
            json!({"status": {"seedName": "b", "ownership": {"epoch": 3, "phase": phase, "drained": drained,
                "source": {"name": "a", "epoch": 1}}}})
        };
        for (shoot, epoch, claimed) in [
            (record("Claiming", false), 3, true),
            (record("Opening", false), 3, true),
            (record("Claiming", true), 3, false),
            (record("Held", false), 3, false),
            (record("Claiming", false), 2, false),
            (record("Claiming", false), 4, false),
            (json!({"status": {"ownership": {"epoch": 3}}}), 3, false),
            (json!({}), 1, false),
        ] {
            let expected = claimed.then_some(Takeover {
                origin: Some(1),
                returns: false,
            });
            assert_eq!(parse_takeover(&shoot, epoch), expected, "{shoot} {epoch}");
        }
    }

    #[test]
    fn a_shoot_that_comes_back_finds_its_data_in_its_own_place() {
        let record = |host: &str, source: Value| json!({"status": {"seedName": host, "ownership": {"epoch": 3, "phase": "Claiming", "source": source}}});
        for (shoot, origin, returns) in [
            (record("a", json!({"name": "a", "epoch": 2})), Some(2), true),
            (record("b", json!({"name": "a", "epoch": 2})), Some(2), false),
            (record("a", Value::Null), None, false),
        ] {
            assert_eq!(
                parse_takeover(&shoot, 3),
                Some(Takeover { origin, returns }),
                "{shoot}"
            );
        }
    }
}
