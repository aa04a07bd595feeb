#![allow(clippy::unwrap_used)]
use serde_json::{Value, json};

use super::*;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn seed(name: &str, checks: &Value) -> SeedObject {
    serde_json::from_value(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": name},
        "spec": {"dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
            "provider": {"type": "local", "region": "local"}, "settings": {"ownerChecks": checks}},
    }))
    .unwrap()
}

/// The fence that [`read_terms`] derives from these Seeds.
fn fence(own: &Value, others: &[Value]) -> Result<Duration> {
    let others = others.iter().map(|checks| seed("a", checks)).collect();
    fence_of(&seed("b", own), others)
}

fn fence_of(own: &SeedObject, others: Vec<SeedObject>) -> Result<Duration> {
    let formers: Vec<_> = others
        .into_iter()
        .map(|seed| (seed.name_any(), Some(seed)))
        .collect();
    let shoot = shoot(&json!([]));
    Ok(joined(Terms::default(), own, &shoot, &formers)?.settings().fence)
}

fn shoot(checks: &Value) -> Shoot {
    serde_json::from_value(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
        "spec": {"provider": {"type": "local"}, "region": "local", "seedName": "d", "kubernetes": {"version": "1.34.4"}},
        "status": {"seedName": "d", "ownerChecks": checks},
    }))
    .unwrap()
}

/// Validity belongs to the former owner, and the clock that counts the fence to the destination.
#[test]
fn the_fence_of_a_pair_covers_the_settings_of_both() {
    let former = json!({"enabled": true, "validity": "60s", "drift": 0, "fence": "71s"});
    let own = json!({"enabled": true, "drift": 100_000, "fence": "27s"});
    // 1.1 * (2 + 60 / 0.9 + 5 + 4) = 85.433...
    assert_eq!(fence(&own, &[former]), Ok(Duration::from_millis(85_434)));
    assert_eq!(fence(&own, &[]), Ok(s(27)));
    // A recorded fence is not shortened.
    let recorded = shoot(&json!([{"seedName": "a", "epoch": 3, "fenceSeconds": 90}]));
    let formers = [("a".to_owned(), None)];
    let terms = joined(Terms::default(), &seed("b", &own), &recorded, &formers).unwrap();
    assert_eq!(terms.settings().fence, s(90));
}

/// The destination must outlast all permits that the source's processes may still hold.
#[test]
fn the_longest_fence_of_all_is_waited_for() {
    let usual = || json!({"enabled": true});
    let longer = json!({"enabled": true, "validity": "30s", "fence": "45s"});
    let misfit = json!({"enabled": true, "validity": "40s"});
    for (own, others, expected) in [
        (usual(), vec![], s(24)),
        (usual(), vec![usual()], s(24)),
        (usual(), vec![longer.clone()], s(45)),
        (longer.clone(), vec![usual()], s(45)),
        (longer.clone(), vec![], s(45)),
        (
            json!({"enabled": true, "fence": "1m"}),
            vec![longer.clone(), usual()],
            s(60),
        ),
        // The former owner may not have received yet that owner checks are off.
        (usual(), vec![json!({"enabled": false, "fence": "45s"})], s(45)),
        // Missing settings count as the default.
        (usual(), vec![Value::Null], s(24)),
        (longer, vec![Value::Null], s(45)),
        (usual(), vec![misfit], Duration::from_millis(51_092)),
        // A fence below the default has no effect: an etcd may not have received the value.
        (
            json!({"enabled": true, "interval": "3s", "validity": "9s", "fence": "21s"}),
            vec![],
            s(24),
        ),
    ] {
        assert_eq!(fence(&own, &others), Ok(expected), "{own} {others:?}");
    }
    let error = fence(&usual(), &[json!({"enabled": true, "fence": "soon"})]).unwrap_err();
    assert!(
        error.to_string().contains("seed a, which had the shoot"),
        "{error}"
    );
    let error = fence(&json!({"enabled": true, "validity": "30s"}), &[]).unwrap_err();
    assert!(
        error.to_string().contains("fence (24s) must be at least"),
        "{error}"
    );
}

/// Processes of a dead seed do not receive edits of the Seed.
#[test]
fn a_fence_that_was_lowered_behind_a_dead_seed_is_waited_for_as_it_was() {
    let usual = Terms::default();
    let of = |checks: Value, told: i64| {
        let mut seed = seed("a", &checks);
        seed.status = serde_json::from_value(json!({"ownerCheckFenceSeconds": told})).unwrap();
        seed
    };
    for (checks, expected) in [
        (json!({"enabled": true}), s(45)),
        (json!({"enabled": true, "fence": "1m"}), s(60)),
        (json!({"enabled": false}), s(45)),
        (Value::Null, s(45)),
    ] {
        let former = of(checks.clone(), 45);
        assert_eq!(
            fence_of(&seed("b", &json!({"enabled": true})), vec![former]),
            Ok(expected),
            "{checks}"
        );
        // The seed's own processes of an earlier epoch count as own, not as former.
        let own = own_terms(usual, &of(checks.clone(), 45)).unwrap();
        assert_eq!(own.settings().fence, expected, "{checks}");
    }
    assert_eq!(
        fence_of(&seed("b", &json!({"enabled": true})), vec![of(Value::Null, 0)]),
        Ok(s(24))
    );
}

/// A seed writes the seed's own status: a reported fence delays a takeover by an hour at most
/// (`ownership::settings::LONGEST`).
#[test]
fn a_seed_that_tells_an_endless_fence_does_not_keep_its_shoots() {
    for (told, expected) in [(i64::MAX, s(3600)), (3601, s(3600)), (3599, s(3599)), (-1, s(24))] {
        let mut source = seed("a", &json!({"enabled": true}));
        source.status = serde_json::from_value(json!({"ownerCheckFenceSeconds": told})).unwrap();
        let waited = fence_of(&seed("b", &json!({"enabled": true})), vec![source]);
        assert_eq!(waited, Ok(expected), "{told}");
    }
}

/// A seed reports the seed's own fence, in the Seed and in the Shoot. After the statement of an operator that
/// the seed is off, neither report counts. All other former owners are waited for.
#[test]
fn a_seed_that_is_stated_off_is_not_waited_for() {
    let mut source = seed("a", &json!({"enabled": true, "fence": "soon"}));
    source.status = serde_json::from_value(json!({"ownerCheckFenceSeconds": 3600})).unwrap();
    let formers = [
        ("a".to_owned(), Some(source)),
        (
            "b".to_owned(),
            Some(seed("b", &json!({"enabled": true, "fence": "45s"}))),
        ),
    ];
    let mut shoot = shoot(&json!([{"seedName": "a", "epoch": 3, "fenceSeconds": 3600}]));
    let own = seed("d", &json!({"enabled": true}));
    let status = shoot.status.as_mut().unwrap();
    status.former_seeds =
        serde_json::from_value(json!([{"name": "a", "epoch": 3}, {"name": "b", "epoch": 2}])).unwrap();
    let stated = |epoch: i64| {
        serde_json::from_value(
            json!({"epoch": 4, "phase": "Claiming", "source": {"name": "a", "epoch": 3},
            "seedsStatedOff": [{"name": "a", "epoch": epoch}]}),
        )
        .unwrap()
    };
    status.ownership = stated(3);
    let fence = joined(Terms::default(), &own, &shoot, &formers).map(|terms| terms.settings().fence);
    assert_eq!(fence, Ok(s(45)));
    // A statement about an earlier residency does not cover the later residency.
    shoot.status.as_mut().unwrap().ownership = stated(2);
    assert!(joined(Terms::default(), &own, &shoot, &formers).is_err());
}

#[test]
fn settings_of_checks_that_are_off_hold_up_nothing() {
    let off = json!({"enabled": false, "validity": "30s"});
    assert_eq!(fence(&off, &[]), Ok(s(24)));
}

/// Each of these seeds may have processes with a permit of an earlier epoch.
#[test]
fn all_are_waited_for_of_whom_something_may_be_left() {
    let shoot = |ownership: Value| -> Shoot {
        serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
            "spec": {"provider": {"type": "local"}, "region": "local", "seedName": "d", "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": "d", "technicalID": "t", "uid": "u", "ownership": ownership,
                "formerSeeds": [{"name": "b", "epoch": 2}, {"name": "d", "epoch": 1}]},
        }))
        .unwrap()
    };
    let source = json!({"name": "a", "epoch": 3});
    for (phase, expected) in [
        ("Claiming", vec!["a", "b"]),
        ("Opening", vec!["a", "b"]),
        ("Held", vec![]),
        ("Leaving", vec![]),
    ] {
        let shoot = shoot(json!({"epoch": 4, "phase": phase, "source": source}));
        let expected: BTreeSet<_> = expected.into_iter().map(str::to_owned).collect();
        assert_eq!(others(&shoot, "d"), expected, "{phase}");
    }
    assert!(others(&shoot(Value::Null), "d").is_empty());
    // The seed takes back data that the destination did not open: the seed's own processes use the seed's own
    // settings.
    let back = json!({"epoch": 5, "phase": "Claiming", "source": {"name": "d", "epoch": 1}});
    assert_eq!(others(&shoot(back), "d"), ["b".to_owned()].into());
}

/// The settings of a deleted Seed are not readable; the gardenlet has recorded the fence in the Shoot.
#[test]
fn the_fence_of_a_deleted_seed_is_recorded_in_the_shoot() {
    let shoot = shoot(&json!([{"seedName": "a", "epoch": 3, "fenceSeconds": 45},
        {"seedName": "b", "epoch": 2, "fenceSeconds": -1}, {"seedName": "c", "epoch": 2}]));
    for (seed, expected) in [("a", Some(s(45))), ("b", None), ("c", None), ("e", None)] {
        assert_eq!(recorded_fence(&shoot, seed), expected, "{seed}");
    }
}
