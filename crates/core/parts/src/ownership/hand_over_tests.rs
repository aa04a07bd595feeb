#![allow(clippy::unwrap_used)]
use serde_json::{Value, json};

use super::*;

fn source(ownership: &Value) -> Option<(String, i64)> {
    let shoot: Shoot = crate::from_json(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
        "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
        "status": {"seedName": "b", "ownership": ownership},
    }))
    .unwrap();
    source_of_hand_over(&shoot).map(|source| (source.seed, source.epoch))
}

#[test]
fn only_a_hand_over_before_the_choice_of_the_data_is_confirmed() {
    let record = |phase: &str, drained: bool, source: &str| json!({"epoch": 4, "phase": phase, "drained": drained, "source": {"name": source, "epoch": 3}});
    assert_eq!(source(&record("Claiming", true, "a")), Some(("a".to_owned(), 3)));
    for other in [
        record("Claiming", false, "a"),
        record("Claiming", true, "b"),
        record("Opening", true, "a"),
        record("Held", true, "a"),
        json!({"epoch": 4, "phase": "Claiming", "drained": true}),
        json!({"epoch": 4}),
        Value::Null,
    ] {
        assert_eq!(source(&other), None, "{other}");
    }
}
