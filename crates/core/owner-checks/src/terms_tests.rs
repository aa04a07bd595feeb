#![allow(clippy::unwrap_used)]
use serde_json::{Value, json};

use super::*;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn checks_with(fields: &Value) -> OwnerChecks {
    let mut all = json!({"enabled": true});
    for (field, value) in fields.as_object().unwrap() {
        all[field] = value.clone();
    }
    serde_json::from_value(all).unwrap()
}

#[test]
fn what_a_seed_does_not_give_is_as_usual() {
    assert_eq!(
        terms(&checks_with(&json!({})), Terms::default()),
        Ok(Terms::default())
    );
    let all = checks_with(&json!({
        "interval": "5s", "timeout": "500ms", "storeTimeout": "2s", "validity": "20s", "requests": "4s", "propagation": "0s",
        "dnsCacheTTL": "1m", "fence": "1m30s", "drift": 500, "silence": "Tolerate",
    }));
    let read = terms(&all, Terms::default()).unwrap();
    let expected = Settings {
        interval: s(5),
        timeout: Duration::from_millis(500),
        store_timeout: s(2),
        validity: s(20),
        requests: s(4),
        propagation: s(0),
        dns_cache_ttl: s(60),
        drift: 500,
        pause: Settings::default().pause,
        fence: s(90),
        // `silence` concerns etcd alone: all other processes learn the effect from the process beside etcd.
        silence: ownership::Silence::Deactivate,
    };
    assert_eq!(*read.settings(), expected);
}

/// The API server refuses all these values; the reader must not rely on that.
#[test]
fn what_is_wrong_is_said_with_what_to_write() {
    const TOGETHER: &str = " of the Seed does not fit together: ";
    for (fields, sentence) in [
        (
            json!({"interval": "0s"}),
            ".interval of the Seed is \"0s\"; write a duration from 100ms to 1h",
        ),
        (
            json!({"interval": "-4s"}),
            ".interval of the Seed is \"-4s\"; write",
        ),
        (
            json!({"interval": "soon"}),
            ".interval of the Seed is \"soon\"; write",
        ),
        (
            json!({"timeout": "10ms"}),
            ".timeout of the Seed is \"10ms\"; write a duration from 50ms to 1h",
        ),
        (
            json!({"storeTimeout": ""}),
            ".storeTimeout of the Seed is \"\"; write",
        ),
        (
            json!({"validity": "61m"}),
            ".validity of the Seed is \"61m\"; write",
        ),
        (
            json!({"validity": "99999999999999999999h"}),
            ".validity of the Seed is",
        ),
        (
            json!({"requests": "0s"}),
            ".requests of the Seed is \"0s\"; write",
        ),
        (json!({"propagation": "1us"}), "such as 5s, or 0s"),
        (
            json!({"dnsCacheTTL": "2h"}),
            ".dnsCacheTTL of the Seed is \"2h\"; write",
        ),
        (
            json!({"fence": "999999h"}),
            ".fence of the Seed is \"999999h\"; write",
        ),
        (
            json!({"drift": -1}),
            ".drift of the Seed is -1; write parts of a million",
        ),
        (json!({"drift": 200_000}), &format!("{TOGETHER}drift")),
        (
            json!({"interval": "2s"}),
            &format!("{TOGETHER}interval (2s) must be at least as long as"),
        ),
        (json!({"timeout": "2s"}), &format!("{TOGETHER}interval")),
        (json!({"interval": "5s"}), &format!("{TOGETHER}validity")),
        (
            json!({"validity": "30s"}),
            &format!("{TOGETHER}fence (24s) must be at least 41.072s"),
        ),
        (json!({"dnsCacheTTL": "10s"}), &format!("{TOGETHER}fence")),
    ] {
        let error = terms(&checks_with(&fields), Terms::default()).unwrap_err();
        let path = "spec.settings.ownerChecks";
        assert!(
            error.starts_with(path) && error.contains(sentence),
            "{fields}: {error}"
        );
    }
}

#[test]
fn a_seed_is_waited_for_as_long_as_it_says_and_as_it_needs() {
    for (fields, expected) in [
        (json!({}), s(24)),
        (json!({"fence": "45s"}), s(45)),
        (json!({"validity": "30s", "fence": "45s"}), s(45)),
        // No process acts by durations that do not fit together, and the durations before the edit are
        // unknown.
        (json!({"validity": "30s"}), Duration::from_millis(41_072)),
        (json!({"silence": "Tolerate"}), s(24)),
    ] {
        let needed = needed_fence(&checks_with(&fields), Terms::default());
        assert_eq!(needed, Ok(expected), "{fields}");
    }
    assert!(needed_fence(&checks_with(&json!({"fence": "soon"})), Terms::default()).is_err());
}

#[test]
fn an_etcd_is_fenced_by_what_covers_all_of_its_settings() {
    let check = |fields: &Value| -> OwnerCheckSpec {
        let mut all =
            json!({"name": "owner.web.example.test", "id": "a", "zone": "example.test", "shootUID": "u"});
        for (field, value) in fields.as_object().unwrap() {
            all[field] = value.clone();
        }
        serde_json::from_value(all).unwrap()
    };
    let longer = json!({"validity": "30s", "fence": "1m"});
    for (fields, fence, expected) in [
        (&json!({}), 24, true),
        (&json!({}), 23, false),
        (&longer, 41, false),
        // The settings were checked against the fence of 60 s; the fence that the durations need is shorter.
        (&longer, 42, true),
        (&json!({"silence": "Tolerate"}), 3600, false),
        (&json!({"validity": "soon"}), 3600, false),
    ] {
        assert_eq!(
            is_fenced_by(&check(fields), s(fence)),
            expected,
            "{fields} {fence}"
        );
    }
}
