//! The taint of a Seed that is closed: pure decisions.

use api::{
    constants::SEED_CORDONED,
    gardencore::{Seed, seed::SeedTaint},
};
use serde_json::{Value, json};

/// The decision about a Seed.
#[derive(Clone, Debug, PartialEq)]
pub enum SeedEdit {
    /// Apply this merge patch.
    Patch(Value),
    /// The Seed has the wanted taints.
    Unchanged,
}

/// The edit that closes or opens the Seed. The taints of the operator stay.
#[must_use]
pub fn decide(seed: &Seed, closed: bool) -> SeedEdit {
    if seed.spec.is_cordoned() == closed {
        return SeedEdit::Unchanged;
    }
    let others = seed.spec.taints.iter().filter(|taint| taint.key != SEED_CORDONED);
    let mut taints: Vec<SeedTaint> = others.cloned().collect();
    if closed {
        taints.push(SeedTaint {
            key: SEED_CORDONED.to_owned(),
            value: None,
        });
    }
    let taints = if taints.is_empty() {
        Value::Null
    } else {
        json!(taints)
    };
    SeedEdit::Patch(json!({"spec": {"taints": taints}}))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn seed(taints: &str) -> Seed {
        serde_yaml_ng::from_str(&format!(
            "metadata: {{name: a}}\nspec: {{dns: {{}}, networks: {{pods: p, services: s}}, provider: {{type: t, region: r}}, \
             taints: [{taints}]}}\n"
        ))
        .unwrap()
    }

    #[test]
    fn a_cordon_keeps_the_other_taints() {
        let patch = decide(&seed("{key: tier, value: gold}"), true);
        let taints = json!([{"key": "tier", "value": "gold"}, {"key": SEED_CORDONED}]);
        assert_eq!(patch, SeedEdit::Patch(json!({"spec": {"taints": taints}})));
        let both = seed(&format!("{{key: {SEED_CORDONED}}}, {{key: tier}}"));
        assert_eq!(decide(&both, true), SeedEdit::Unchanged);
        assert_eq!(
            decide(&both, false),
            SeedEdit::Patch(json!({"spec": {"taints": [{"key": "tier"}]}}))
        );
    }

    #[test]
    fn an_open_seed_without_taints_has_no_list() {
        let cordoned = seed(&format!("{{key: {SEED_CORDONED}}}"));
        assert_eq!(
            decide(&cordoned, false),
            SeedEdit::Patch(json!({"spec": {"taints": null}}))
        );
        assert_eq!(decide(&seed(""), false), SeedEdit::Unchanged);
    }
}
