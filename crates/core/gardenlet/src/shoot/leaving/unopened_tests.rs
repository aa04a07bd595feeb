#![allow(clippy::unwrap_used)]
use serde_json::{Value, json};

use super::*;

fn shoot(ownership: &Value) -> Shoot {
    serde_json::from_value(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
        "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
        "status": {"seedName": "a", "formerSeeds": [{"name": "b", "epoch": 2}], "ownership": ownership},
    }))
    .unwrap()
}

/// Seed `b` claimed the shoot in epoch 2.
#[test]
fn a_claimant_has_nothing_only_where_the_record_names_the_data_of_another_seed() {
    let record =
        |epoch: i64, phase: &str, source: Value| json!({"epoch": epoch, "phase": phase, "source": source});
    let of = |name: &str, epoch: i64| json!({"name": name, "epoch": epoch});
    for (case, ownership, expected) in [
        ("taken back", record(3, "Claiming", of("a", 1)), true),
        (
            "being opened by the source",
            record(3, "Opening", of("a", 1)),
            true,
        ),
        (
            "taken back after a third seed",
            record(4, "Claiming", of("a", 1)),
            true,
        ),
        ("opened by the seed", record(3, "Claiming", of("b", 2)), false),
        (
            "the data are in the seed",
            record(3, "Claiming", of("b", 1)),
            false,
        ),
        ("opened elsewhere since", record(4, "Claiming", of("c", 3)), false),
        (
            "the epoch has not ended",
            record(2, "Claiming", of("a", 1)),
            false,
        ),
        ("no source is recorded", record(3, "Claiming", Value::Null), false),
        ("no phase is recorded", json!({"epoch": 3}), false),
        ("nothing is recorded", Value::Null, false),
    ] {
        assert_eq!(opened_nothing(&shoot(&ownership), "b", 2), expected, "{case}");
    }
}
