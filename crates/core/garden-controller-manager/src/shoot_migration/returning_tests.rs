#![allow(clippy::unwrap_used)]
use serde_json::{Value, json};

use super::*;

fn seed(checks: bool) -> Seed {
    serde_json::from_value(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": "a"},
        "spec": {"dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
            "provider": {"type": "local", "region": "local"},
            "settings": {"ownerChecks": {"enabled": checks}}},
    }))
    .unwrap()
}

/// Seed `a` has handed the shoot over to seed `b`.
fn shoot(record: &Value, is_asked: bool) -> Shoot {
    let annotations = is_asked.then(|| json!({(SHOOT_FORCE_RESTORE): "true"}));
    let formers = json!([{"name": "a", "epoch": 3}, {"name": "c", "epoch": 1}]);
    serde_json::from_value(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot",
        "metadata": {"name": "web", "annotations": annotations},
        "spec": {"provider": {"type": "local"}, "region": "local", "seedName": "a",
            "kubernetes": {"version": "1.34.4"}},
        "status": {"seedName": "b", "formerSeeds": formers, "ownership": record},
    }))
    .unwrap()
}

fn claimed() -> Value {
    json!({"epoch": 4, "phase": "Claiming", "drained": true, "source": {"name": "a", "epoch": 3}})
}

fn judged(record: &Value, is_asked: bool) -> Option<String> {
    obstacle(&shoot(record, is_asked), &seed(true), "or wait")
}

#[test]
fn a_source_takes_back_a_shoot_whose_destination_has_opened_nothing() {
    assert_eq!(judged(&claimed(), true), None);
    // A takeover whose destination dies as well.
    let mut taken = claimed();
    taken["drained"] = json!(false);
    assert_eq!(judged(&taken, true), None);
    // The annotation is removed once the approval is recorded.
    let approval = |to: &str, epoch: i64| {
        let mut record = claimed();
        record["approval"] = json!({"uid": "u", "from": "b", "to": to, "epoch": epoch,
            "acceptedLoss": "SinceLastSnapshot", "expiry": "2026-01-01T00:00:00Z", "by": "Operator",
            "reason": "r"});
        judged(&record, false)
    };
    assert_eq!(approval("a", 4), None);
    // The approval of an earlier epoch is used up, and an approval for another seed is not for this seed.
    assert!(approval("a", 3).is_some());
    assert!(approval("c", 4).is_some());
}

/// Seed `a` had the shoot in epoch 3 without opening the data, and lost the shoot again.
#[test]
fn a_source_that_took_the_shoot_back_and_lost_it_again_takes_it_back_once_more() {
    for opened in [1, 2, 3] {
        let mut record = claimed();
        record["source"]["epoch"] = json!(opened);
        record["drained"] = json!(false);
        assert_eq!(judged(&record, true), None, "{opened}");
        let message = judged(&record, false).unwrap();
        assert!(message.contains("still has the data of the shoot"), "{message}");
    }
}

#[test]
fn without_a_request_the_user_learns_which_request_brings_the_shoot_back() {
    let message = judged(&claimed(), false).unwrap();
    for words in [
        "Seed a has not cleaned up its former residency of the shoot yet (status.formerSeeds), and still has",
        "seed b has opened none: let seed b restore the shoot",
        "(shoot.gardener.cloud/force-restore=true); name another seed, or wait.",
    ] {
        assert!(message.contains(words), "{message}");
    }
}

/// A volume of an earlier history, or a seed that cannot fence the claimant, is no place to go back to.
#[test]
fn a_source_whose_data_are_not_the_newest_cleans_up_first() {
    for (field, value) in [
        ("phase", json!("Opening")),
        ("phase", json!("Held")),
        ("phase", json!("Leaving")),
        ("phase", json!("Sealing")),
        // A garden that states the impossible: the entry is older than the data.
        ("source", json!({"name": "a", "epoch": 4})),
        ("source", json!({"name": "c", "epoch": 3})),
        // Seed `c` has opened an epoch, and has lost the shoot since.
        ("source", json!({"name": "c", "epoch": 2})),
        ("source", Value::Null),
    ] {
        let mut record = claimed();
        record[field] = value;
        let message = judged(&record, true).unwrap();
        assert!(message.contains("the move begins once it has"), "{message}");
    }
    let mut restoring = shoot(&json!({"epoch": 4, "phase": "Opening"}), true);
    restoring.status.as_mut().unwrap().last_operation = serde_json::from_value(json!({
        "type": "Restore", "state": "Processing", "progress": 5, "description": "d",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }))
    .unwrap();
    let message = obstacle(&restoring, &seed(true), "or wait").unwrap();
    let words = "cleans up after the present seed has restored the shoot";
    assert!(message.contains(words), "{message}");
    let unchecked = obstacle(&shoot(&claimed(), true), &seed(false), "or wait");
    assert!(unchecked.is_some());
    // Where no phases are recorded, no record names the seed with the data.
    assert!(judged(&json!({"epoch": 4}), true).is_some());
}
