#![allow(clippy::unwrap_used)]
use serde_json::json;

use super::*;

fn cluster(change: impl FnOnce(&mut Value)) -> ClusterObject {
    let mut cluster = json!({
        "apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Cluster", "metadata": {"name": "shoot--dev--web"},
        "spec": {
            "cloudProfile": {},
            "seed": {
                "metadata": {"name": "seed-a"},
                "spec": {
                    "settings": {"ownerChecks": {"enabled": true, "authorities": ["192.0.2.1:53", "[2001:db8::1]:5353"]}},
                    "dns": {"internal": {
                        "type": "local", "domain": "internal.example.test", "zone": "example.test", "credentialsRef": {},
                    }},
                },
                "status": {"clusterIdentity": "landscape-seed-a"},
            },
            "shoot": {"metadata": {"uid": "0841c87f"}, "status": {
                "seedName": "seed-a", "ownership": {"epoch": 3},
                "advertisedAddresses": [
                    {"name": "external", "url": "https://api.web.example.test"},
                    {"name": "internal", "url": "https://api.web.dev.internal.example.test"},
                ],
            }},
        },
    });
    change(&mut cluster["spec"]);
    serde_json::from_value(cluster).unwrap()
}

/// R17-13.
#[test]
fn all_that_is_needed_comes_with_the_cluster() {
    let wanted = OwnerClaim::from_cluster(&cluster(|_| {})).unwrap().unwrap();
    assert_eq!(
        wanted,
        OwnerClaim {
            shoot_uid: "0841c87f".into(),
            name: "owner.web.dev.internal.example.test".into(),
            identity: "landscape-seed-a".into(),
            zone: "example.test".into(),
            authorities: vec![
                "192.0.2.1:53".parse().unwrap(),
                "[2001:db8::1]:5353".parse().unwrap()
            ],
            epoch: 3,
            terms: Terms::default(),
        }
    );
    let first = OwnerClaim::from_cluster(&cluster(|spec| {
        spec["shoot"]["status"]["ownership"] = Value::Null;
    }));
    assert_eq!(first.unwrap().unwrap().epoch, 1);
}

/// R17-49: losses are remembered by this uid. A garden restored from a backup keeps the first uid in the
/// status.
#[test]
fn the_uid_is_that_of_the_first_reconciliation() {
    for (status, expected) in [
        (json!(null), "0841c87f"),
        (json!(""), "0841c87f"),
        (json!("first"), "first"),
    ] {
        let of = cluster(move |spec| spec["shoot"]["status"]["uid"] = status);
        assert_eq!(
            OwnerClaim::from_cluster(&of).unwrap().unwrap().shoot_uid,
            expected
        );
    }
}

/// A provider may identify the zone by an id, and such an id is not a zone name.
#[test]
fn the_zone_is_a_name_around_the_domain() {
    for (zone, expected) in [
        (json!("example.test"), "example.test"),
        (json!("example.test."), "example.test."),
        (json!("internal.example.test"), "internal.example.test"),
        (json!("Z08ABC"), "internal.example.test"),
        (json!("xample.test"), "internal.example.test"),
        (json!(""), "internal.example.test"),
        (Value::Null, "internal.example.test"),
    ] {
        let told = zone.clone();
        let of = cluster(move |spec| spec["seed"]["spec"]["dns"]["internal"]["zone"] = told);
        assert_eq!(
            OwnerClaim::from_cluster(&of).unwrap().unwrap().zone,
            expected,
            "{zone}"
        );
    }
}

#[test]
fn nothing_is_asked_where_the_seed_does_not_say_so() {
    for change in [
        (|spec| spec["seed"]["spec"]["settings"] = Value::Null) as fn(&mut Value),
        |spec| spec["seed"]["spec"]["settings"]["ownerChecks"] = Value::Null,
        |spec| spec["seed"]["spec"]["settings"]["ownerChecks"]["enabled"] = json!(false),
        |spec| spec["seed"] = Value::Null,
    ] {
        assert_eq!(OwnerClaim::from_cluster(&cluster(change)), Ok(None));
    }
}

/// An invalid owner check must not count as a disabled owner check.
#[test]
fn what_is_missing_or_wrong_is_said() {
    type Change = fn(&mut Value);
    let cases: [(Change, &str, &str); 7] = [
        (
            |spec| spec["seed"]["spec"]["dns"] = Value::Null,
            "Config",
            "spec.dns.internal",
        ),
        (
            |spec| spec["shoot"]["status"]["advertisedAddresses"] = json!([]),
            "Config",
            "spec.dns.internal",
        ),
        (
            |spec| spec["seed"]["status"]["clusterIdentity"] = json!(""),
            "NotReady",
            "clusterIdentity",
        ),
        (
            |spec| spec["seed"]["spec"]["settings"]["ownerChecks"]["authorities"] = json!(["ns.example:53"]),
            "Config",
            "ns.example:53",
        ),
        (
            |spec| spec["seed"]["spec"]["settings"]["ownerChecks"] = json!({"enabled": "yes"}),
            "Config",
            "ownerChecks of the Seed cannot be understood",
        ),
        (
            |spec| spec["shoot"]["status"]["ownership"]["epoch"] = json!("3"),
            "Config",
            "status.ownership.epoch",
        ),
        (
            |spec| spec["shoot"]["status"]["ownership"]["epoch"] = json!(1.5),
            "Config",
            "status.ownership.epoch",
        ),
    ];
    for (change, class, said) in cases {
        let error = OwnerClaim::from_cluster(&cluster(change)).unwrap_err();
        assert_eq!(error.class(), class, "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
}
