//! Whether a seed announces itself in the bucket of the seed from which it takes a shoot (docs/ownership.md, "Without the source").

use api::extensions;
use runtime::{Cluster, Result, Seed};
use serde_json::Value;

/// Whether the shoot is taken over without the help of its source, in the epoch of the entry. Read as it is at this moment: whoever
/// waits for the claim goes by the annotation of the Secret, and asks again where it is not there.
pub async fn is_needed(seed: &Seed, cluster: &str, epoch: i64) -> Result<bool> {
    let found = seed
        .cluster_wide::<extensions::Cluster>()
        .get_opt(cluster)
        .await?;
    Ok(found.is_some_and(|found| is_claimed(&found.spec.shoot.0, epoch)))
}

fn is_claimed(shoot: &Value, epoch: i64) -> bool {
    let record = shoot.pointer("/status/ownership").unwrap_or(&Value::Null);
    matches!(record["phase"].as_str(), Some("Claiming" | "Opening"))
        && record["drained"] != true
        && record["epoch"] == epoch
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A planned move needs no claim: its source has stopped, and said so.
    #[test]
    fn only_a_shoot_that_is_taken_over_without_its_source_is_claimed() {
        let record = |phase: &str, drained: bool| json!({"status": {"ownership": {"epoch": 3, "phase": phase, "drained": drained}}});
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
            assert_eq!(is_claimed(&shoot, epoch), claimed, "{shoot} {epoch}");
        }
    }
}
