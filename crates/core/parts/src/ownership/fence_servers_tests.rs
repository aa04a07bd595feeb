//! The servers of a fence: settings, reports and NS records together.

#![allow(clippy::unwrap_used)]
use serde_json::{Value, json};

use super::*;

fn seed(checks: &Value) -> SeedObject {
    serde_json::from_value(json!({
        "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Seed", "metadata": {"name": "a"},
        "spec": {"dns": {}, "networks": {"pods": "10.1.0.0/16", "services": "10.2.0.0/16"},
            "provider": {"type": "local", "region": "local"}, "settings": {"ownerChecks": checks}},
    }))
    .unwrap()
}

fn entry(servers: &[&str], servers_named: Option<bool>) -> SeedOwnerCheck {
    SeedOwnerCheck {
        seed_name: "a".into(),
        epoch: 3,
        servers: servers.iter().map(ToString::to_string).collect(),
        servers_named,
        fence_seconds: Some(24),
        ..SeedOwnerCheck::default()
    }
}

/// A process may use the settings or the reported servers.
#[test]
fn settings_and_report_of_a_former_seed_both_count() {
    let named = seed(&json!({"enabled": true, "authorities": ["192.0.2.1:53"]}));
    let unnamed = seed(&json!({"enabled": true}));
    let off = seed(&json!({"enabled": false, "authorities": ["192.0.2.1:53"]}));
    let without = seed(&Value::Null);
    let empty = seed(&json!({"enabled": false}));
    let other = entry(&["192.0.2.9:53"], Some(true));
    let found = entry(&["192.0.2.8:53"], Some(false));
    for (seed, reported, servers, uses_ns_records) in [
        (Some(&named), None, vec!["192.0.2.1:53"], false),
        (
            Some(&named),
            Some(&other),
            vec!["192.0.2.1:53", "192.0.2.9:53"],
            false,
        ),
        (
            Some(&named),
            Some(&found),
            vec!["192.0.2.1:53", "192.0.2.8:53"],
            true,
        ),
        (Some(&unnamed), None, vec![], true),
        (Some(&unnamed), Some(&other), vec!["192.0.2.9:53"], true),
        // Processes that have not received the switched-off checks still ask.
        (Some(&off), None, vec!["192.0.2.1:53"], false),
        (Some(&without), Some(&other), vec!["192.0.2.9:53"], false),
        (Some(&empty), Some(&other), vec!["192.0.2.9:53"], true),
        // No process of a seed without checks has ever asked a server.
        (Some(&without), None, vec![], false),
        (Some(&empty), None, vec![], false),
        (None, Some(&other), vec!["192.0.2.9:53"], false),
        (None, Some(&found), vec!["192.0.2.8:53"], true),
        // A user states that no process of the seed runs.
        (None, Some(&entry(&[], Some(true))), vec![], false),
    ] {
        let known = servers_of("a", seed, reported).unwrap();
        let expected = servers.iter().map(|server| server.parse().unwrap()).collect();
        assert_eq!(known.servers, expected, "{seed:?} {reported:?}");
        assert_eq!(known.uses_ns_records, uses_ns_records, "{seed:?} {reported:?}");
    }
}

#[test]
fn a_deleted_seed_whose_servers_are_not_known_holds_the_fence_up() {
    // The fence of the seed is unknown, too.
    let unbounded = SeedOwnerCheck {
        fence_seconds: None,
        ..entry(&["192.0.2.9:53"], Some(true))
    };
    for reported in [None, Some(&entry(&[], None)), Some(&unbounded)] {
        let error = servers_of("a", None, reported).unwrap_err().to_string();
        assert!(
            error.contains("Seed a, which had the shoot, was deleted"),
            "{error}"
        );
        assert!(
            error.contains("servers, serversNamed and fenceSeconds"),
            "{error}"
        );
    }
    let error = servers_of("a", None, Some(&entry(&["ns.example.test"], Some(true)))).unwrap_err();
    assert!(error.to_string().contains("ns.example.test"), "{error}");
}

#[test]
fn an_error_names_the_seed_that_asks_a_foreign_server() {
    let server = |text: &str| text.parse::<SocketAddr>().unwrap();
    let asked = |seed: &str, servers: &[&str]| {
        let asked = AskedServers {
            servers: servers.iter().map(|text| server(text)).collect(),
            uses_ns_records: false,
        };
        (seed.to_owned(), asked)
    };
    let own = asked("b", &["192.0.2.1:53"]);
    let alone = FenceServers(fence_servers([own.clone()], &[]));
    assert_eq!(alone.describe_foreign("b"), "");
    let former = [
        asked("a", &["192.0.2.1:53", "192.0.2.9:53"]),
        asked("c", &["192.0.2.9:53"]),
    ];
    let all = FenceServers(fence_servers(former.into_iter().chain([own]), &[]));
    assert_eq!(
        all.describe_foreign("b"),
        " (192.0.2.9:53 is asked by seed a and seed c)"
    );
}

#[test]
fn a_statement_that_the_source_is_off_leaves_out_that_seed_alone() {
    let owners = |is_off: bool, epoch: i64| {
        let approval = json!({"uid": "u", "from": "a", "to": "b", "epoch": 3, "acceptedLoss": "SinceLastSnapshot",
            "expiry": "2026-01-01T00:00:00Z", "by": "Operator", "reason": "Because.", "sourceIsOff": is_off});
        let shoot: Shoot = serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
            "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": "b", "formerSeeds": [{"name": "a", "epoch": 3}, {"name": "c", "epoch": 2}],
                "ownership": {"epoch": epoch, "phase": "Claiming", "source": {"name": "c", "epoch": 2}, "approval": approval}},
        }))
        .unwrap();
        former_owners(&shoot, "b").into_iter().collect::<Vec<_>>()
    };
    assert_eq!(owners(true, 4), ["c"]);
    assert_eq!(owners(false, 4), ["a", "c"]);
    // Consent to a different epoch does not count in this epoch.
    assert_eq!(owners(true, 5), ["a", "c"]);
}

/// A later takeover keeps the statement about an earlier source.
#[test]
fn a_seed_that_was_stated_to_be_off_stays_so_until_it_has_the_shoot_again() {
    let owners = |epoch: i64| {
        let shoot: Shoot = serde_json::from_value(json!({
            "apiVersion": "core.gardener.cloud/v1beta1", "kind": "Shoot", "metadata": {"name": "web"},
            "spec": {"provider": {"type": "local"}, "region": "local", "kubernetes": {"version": "1.34.4"}},
            "status": {"seedName": "c", "formerSeeds": [{"name": "a", "epoch": epoch}, {"name": "b", "epoch": 4}],
                "ownership": {"epoch": 9, "phase": "Claiming", "source": {"name": "b", "epoch": 4},
                    "seedsStatedOff": [{"name": "a", "epoch": 3}, {"name": "b", "epoch": 1}]}},
        }))
        .unwrap();
        former_owners(&shoot, "c").into_iter().collect::<Vec<_>>()
    };
    assert_eq!(owners(3), ["b"]);
    assert_eq!(owners(5), ["a", "b"]);
}

#[test]
fn a_former_owner_that_asks_for_any_other_record_is_recognized() {
    let asks = |name: &str, zone: &str| SeedOwnerCheck {
        name: Some(name.to_owned()),
        zone: Some(zone.to_owned()),
        ..entry(&[], Some(true))
    };
    let other =
        |entry: &SeedOwnerCheck| other_record(entry, "owner.web.dev.internal.example.test", "example.test");
    assert_eq!(other(&entry(&[], Some(true))), None);
    assert_eq!(
        other(&asks("Owner.web.dev.internal.example.test.", "example.test.")),
        None
    );
    assert_eq!(
        other(&asks("owner.web.dev.internal.old.test", "example.test")).unwrap(),
        "owner.web.dev.internal.old.test in zone example.test"
    );
    assert!(
        other(&asks(
            "owner.web.dev.internal.example.test",
            "internal.example.test"
        ))
        .is_some()
    );
}
