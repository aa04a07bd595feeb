//! Whose data a shoot begins with that is taken over without the help of its source
//! (docs/understand/ownership.md, "Without the source").

use api::extensions::Cluster as ClusterObject;
use runtime::{Cluster, Result, Seed};
use serde_json::Value;

/// A shoot that a seed takes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Takeover {
    /// The epoch with whose end the new one begins; none where the shoot does not say so.
    pub origin: Option<i64>,
    /// The data are in the place of the seed that takes the shoot over: it had the shoot in that epoch too.
    pub returns: bool,
}

/// The takeover in the epoch of an entry, if there is one. Read as it is at this moment: whoever waits for
/// the claim goes by the annotation of the Secret, and asks again where it is not there.
pub async fn of(seed: &Seed, cluster: &str, epoch: i64) -> Result<Option<Takeover>> {
    let found = seed.cluster_wide::<ClusterObject>().get_opt(cluster).await?;
    Ok(found.and_then(|found| said(&found.spec.shoot.0, epoch)))
}

fn said(shoot: &Value, epoch: i64) -> Option<Takeover> {
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

    /// A planned move needs no claim: its source has stopped, and said so.
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
            assert_eq!(said(&shoot, epoch), expected, "{shoot} {epoch}");
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
            assert_eq!(said(&shoot, 3), Some(Takeover { origin, returns }), "{shoot}");
        }
    }
}
