//! Server lists that agree or differ, and sources whose processes may have no owner check.

#![allow(clippy::unwrap_used)]
use serde_json::{Value, json};

use super::*;

fn seed(name: &str, authorities: &[&str]) -> Seed {
    serde_json::from_value(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": name},
        "spec": {"dns": {"internal": {"type": "local", "domain": "internal.example.test", "zone": "example.test",
                "credentialsRef": {"name": "dns", "namespace": "garden"}}},
            "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"}, "provider": {"type": "local", "region": "local"},
            "settings": {"ownerChecks": {"enabled": true, "authorities": authorities}}},
    }))
    .unwrap()
}

fn entry(servers: &[&str], named: Option<bool>) -> Value {
    let terms = placement::owner_terms::hash(&seed("a", &[ONE]), 3);
    json!({"seedName": "a", "epoch": 3, "servers": servers, "serversNamed": named, "terms": terms})
}

fn shoot(entry: &Value, complete: Option<&str>) -> Shoot {
    let conditions: Vec<_> = complete
        .map(|status| {
            json!({"type": OWNER_CHECKS_COMPLETE, "status": status, "reason": "R", "message": "Deployment x asks nobody.",
                "lastTransitionTime": "2020-01-01T00:00:00Z", "lastUpdateTime": "2020-01-01T00:00:00Z"})
        })
        .into_iter()
        .collect();
    let entries: Vec<_> = Some(entry).into_iter().filter(|entry| !entry.is_null()).collect();
    serde_json::from_value(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
        "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
        "status": {"seedName": "a", "ownership": {"epoch": 3, "phase": "Held"}, "ownerChecks": entries, "conditions": conditions},
    }))
    .unwrap()
}

const ONE: &str = "192.0.2.1:53";
const TWO: &str = "192.0.2.2:53";

#[test]
fn lists_that_differ_are_named_with_their_seeds() {
    let check = |entry: Value| -> SeedOwnerCheck { serde_json::from_value(entry).unwrap() };
    let (named, found) = (
        check(entry(&[ONE], Some(true))),
        check(entry(&[TWO], Some(false))),
    );
    let (other, none) = (check(entry(&[ONE, TWO], Some(true))), check(entry(&[], None)));
    for (source, reported, destination, expected) in [
        (vec![ONE], None, vec![ONE], None),
        (vec![ONE, TWO], None, vec![TWO, ONE], None),
        (vec![ONE], Some(&named), vec![ONE], None),
        (vec![ONE], Some(&none), vec![ONE], None),
        // Both find their servers: the fence also asks the servers that the source has found.
        (vec![], Some(&found), vec![], None),
        (vec![], None, vec![], None),
        (
            vec![ONE],
            None,
            vec![TWO],
            Some("seed a asks 192.0.2.1:53 (spec.settings"),
        ),
        (
            vec![ONE, TWO],
            None,
            vec![TWO],
            Some("and seed b asks 192.0.2.2:53"),
        ),
        (
            vec![],
            None,
            vec![TWO],
            Some("seed a finds servers by the NS records"),
        ),
        (
            vec![ONE],
            None,
            vec![],
            Some("and seed b finds servers by the NS records"),
        ),
        // The processes of the source have not received the new settings.
        (
            vec![ONE],
            Some(&other),
            vec![ONE],
            Some("seed a asks 192.0.2.1:53, 192.0.2.2:53 (as its processes report"),
        ),
        (
            vec![ONE],
            Some(&found),
            vec![ONE],
            Some("seed a finds servers by the NS records of the zone (as its processes"),
        ),
        (
            vec![],
            Some(&named),
            vec![],
            Some("seed a asks 192.0.2.1:53 (as its processes report"),
        ),
    ] {
        let told = disagreement(&seed("a", &source), reported, &seed("b", &destination));
        match expected {
            None => assert_eq!(told, None, "{source:?} {reported:?} {destination:?}"),
            Some(part) => assert!(told.as_ref().is_some_and(|told| told.contains(part)), "{told:?}"),
        }
    }
}

#[test]
fn only_seeds_with_records_under_the_same_domain_are_compared() {
    let one = seed("a", &[ONE]);
    assert!(share_domain(&one, &seed("b", &[TWO])));
    let mut dotted = seed("b", &[TWO]);
    let dns = dotted.spec.dns.internal.as_mut().unwrap();
    (dns.domain, dns.zone) = ("Internal.example.test.".to_owned(), Some("Z123".to_owned()));
    assert!(share_domain(&one, &dotted));
    let mut elsewhere = seed("b", &[TWO]);
    elsewhere.spec.dns.internal.as_mut().unwrap().domain = "other.example.test".to_owned();
    assert!(!share_domain(&one, &elsewhere));
    let mut off = seed("b", &[TWO]);
    off.spec
        .settings
        .as_mut()
        .unwrap()
        .owner_checks
        .as_mut()
        .unwrap()
        .enabled = false;
    assert!(!share_domain(&one, &off) && !share_domain(&off, &off));
}

#[test]
fn a_source_whose_processes_may_not_ask_is_not_taken_over() {
    let known = entry(&[ONE], Some(true));
    let mut withdrawn = known.clone();
    withdrawn["terms"] = Value::Null;
    let mut earlier = known.clone();
    earlier["epoch"] = json!(2);
    let of = |entry: &Value, complete| {
        obstacle(
            &shoot(entry, complete),
            &seed("a", &[ONE]),
            &seed("b", &[ONE]),
            true,
        )
    };
    assert_eq!(of(&known, Some("True")), None);
    for (entry, complete, expected) in [
        (&known, None, "has never reported that all processes"),
        (&known, Some("False"), "is False (Deployment x asks nobody)"),
        (&known, Some("Unknown"), "is Unknown"),
        (&withdrawn, Some("True"), "has begun to change the owner terms"),
        (&earlier, Some("True"), "has begun to change the owner terms"),
        (&Value::Null, Some("True"), "has begun to change the owner terms"),
        (
            &self::entry(&[], None),
            Some("True"),
            "has not reported which DNS servers",
        ),
    ] {
        let why = of(entry, complete).unwrap();
        assert!(why.contains(expected), "{why}");
        assert!(
            why.contains("reconcile the shoot once while seed a lives"),
            "{why}"
        );
        assert!(
            why.contains("shoot.gardener.cloud/force-restore=source-is-off"),
            "{why}"
        );
    }
    // A claimant that has opened no data has no process that acts for the shoot; its server list counts all
    // the same.
    let claims = shoot(&Value::Null, None);
    assert_eq!(
        obstacle(&claims, &seed("a", &[ONE]), &seed("b", &[ONE]), false),
        None
    );
    let why = obstacle(&claims, &seed("a", &[ONE]), &seed("b", &[TWO]), false).unwrap();
    assert!(why.contains("name the same servers in both Seeds"), "{why}");
}

/// No seed writes the specification, and each seed may report hibernation.
#[test]
fn missing_servers_are_waived_for_a_hibernated_shoot_only_at_the_request_of_a_user() {
    let judged = |enabled: bool| {
        let mut known = shoot(&entry(&[], None), Some("True"));
        known.status.as_mut().unwrap().hibernated = true;
        known.spec.hibernation = serde_json::from_value(json!({"enabled": enabled})).unwrap();
        obstacle(&known, &seed("a", &[ONE]), &seed("b", &[ONE]), true)
    };
    let why = judged(false).unwrap();
    assert!(why.contains("has not reported which DNS servers"), "{why}");
    assert_eq!(judged(true), None);
}

/// Both Seeds agree with each other, but the processes of the dead source still run with the former settings.
#[test]
fn a_source_whose_seed_was_edited_after_its_processes_had_begun_is_not_taken_over() {
    let known = shoot(&entry(&[ONE], Some(true)), Some("True"));
    let destination = seed("b", &[ONE]);
    let mut edited = seed("a", &[ONE]);
    edited.spec.dns.internal.as_mut().unwrap().domain = "old.internal.example.test".to_owned();
    let mut sooner = seed("a", &[ONE]);
    let checks = sooner
        .spec
        .settings
        .as_mut()
        .unwrap()
        .owner_checks
        .as_mut()
        .unwrap();
    checks.drift = Some(5);
    for source in [&edited, &sooner] {
        let why = obstacle(&known, source, &destination, true).unwrap();
        for part in [
            "Seed a was edited",
            "undo the edit",
            "shoot.gardener.cloud/force-restore=source-is-off",
        ] {
            assert!(why.contains(part), "{why}");
        }
    }
}

#[test]
fn a_source_that_asks_for_any_other_record_is_not_taken_over() {
    let asks = |name: &str, zone: &str| {
        let mut entry = entry(&[ONE], Some(true));
        (entry["name"], entry["zone"]) = (json!(name), json!(zone));
        let (source, destination) = (seed("a", &[ONE]), seed("b", &[ONE]));
        obstacle(&shoot(&entry, Some("True")), &source, &destination, true)
    };
    assert_eq!(asks("owner.web.dev.internal.example.test", "example.test"), None);
    for (name, zone) in [
        ("owner.web.dev.old.internal.example.test", "example.test"),
        ("owner.web.dev.internal.example.test", "internal.example.test"),
    ] {
        let why = asks(name, zone).unwrap();
        for part in [
            &format!("ask for the owner record {name} in zone {zone}"),
            "seed b would write owner.web.dev.internal.example.test in zone example.test",
            "spec.dns.internal",
        ] {
            assert!(why.contains(part), "{why}");
        }
    }
}

/// A hostile former seed would stop the takeover after the grant, in phase Claiming.
#[test]
fn a_former_seed_that_asks_for_any_other_record_stops_the_takeover_before_the_grant() {
    let (source, destination) = (seed("a", &[ONE]), seed("b", &[ONE]));
    let why = |former: &str, name: &str, stated_off: Value| {
        let mut shoot = shoot(&entry(&[ONE], Some(true)), Some("True"));
        let status = shoot.status.as_mut().unwrap();
        let reported = json!({"seedName": "z", "epoch": 1, "name": name, "zone": "example.test"});
        status
            .owner_checks
            .push(serde_json::from_value(reported).unwrap());
        status.former_seeds = serde_json::from_value(json!([{"name": former, "epoch": 1}])).unwrap();
        let ownership = json!({"epoch": 3, "phase": "Held", "seedsStatedOff": stated_off});
        status.ownership = serde_json::from_value(ownership).unwrap();
        assert_eq!(obstacle(&shoot, &source, &destination, true), None);
        obstacle_of_former_seeds(&shoot, &source, &destination)
    };
    let (own, other) = ("owner.web.dev.internal.example.test", "owner.x");
    let refusal = why("z", other, json!([])).unwrap();
    for part in [
        "ask for the owner record owner.x in zone example.test",
        "if no process of seed z runs any more, remove name and zone",
    ] {
        assert!(refusal.contains(part), "{refusal}");
    }
    assert_eq!(why("z", own, json!([])), None);
    assert_eq!(why("y", other, json!([])), None);
    // The fence waits for no seed that an operator states to be off.
    assert_eq!(why("z", other, json!([{"name": "z", "epoch": 1}])), None);
}

/// The fence reads all servers of an entry, also where the processes find servers by NS records.
#[test]
fn a_server_that_is_no_address_stops_the_takeover_before_the_grant() {
    let (source, destination) = (seed("a", &[ONE]), seed("b", &[ONE]));
    for named in [None, Some(false), Some(true)] {
        let mut shoot = shoot(&entry(&[ONE], Some(true)), Some("True"));
        let status = shoot.status.as_mut().unwrap();
        let reported = json!({"seedName": "z", "epoch": 1, "servers": [TWO, "x"], "serversNamed": named});
        let reported: SeedOwnerCheck = serde_json::from_value(reported).unwrap();
        status.owner_checks.push(reported.clone());
        status.former_seeds = serde_json::from_value(json!([{"name": "z", "epoch": 1}])).unwrap();
        let refusal = obstacle_of_former_seeds(&shoot, &source, &destination).unwrap();
        assert!(
            refusal.contains("the invalid server \"x\" of seed z"),
            "{refusal}"
        );
        let reported = SeedOwnerCheck {
            seed_name: "a".to_owned(),
            ..reported
        };
        let refusal = disagreement(&source, Some(&reported), &destination).unwrap();
        assert!(
            refusal.contains("the invalid server \"x\" of seed a"),
            "{refusal}"
        );
    }
}

/// A hostile source takes itself out of the list. The entry stays while a claim names the source.
#[test]
fn a_source_that_has_left_the_former_seeds_stops_the_takeover_before_the_grant() {
    let (source, destination) = (seed("a", &[ONE]), seed("b", &[ONE]));
    let why = |phase: &str| {
        let mut shoot = shoot(&entry(&[ONE], Some(true)), Some("True"));
        let status = shoot.status.as_mut().unwrap();
        let reported = json!({"seedName": "z", "epoch": 1, "name": "owner.x", "zone": "example.test"});
        status
            .owner_checks
            .push(serde_json::from_value(reported).unwrap());
        let ownership = json!({"epoch": 3, "phase": phase, "source": {"name": "z", "epoch": 1}});
        status.ownership = serde_json::from_value(ownership).unwrap();
        obstacle_of_former_seeds(&shoot, &source, &destination)
    };
    let refusal = why("Claiming").unwrap();
    assert!(
        refusal.contains("the processes of seed z ask for the owner record owner.x"),
        "{refusal}"
    );
    // Seed a has opened the data, so the next fence concerns no earlier source that has left the shoot.
    assert_eq!(why("Held"), None);
}
