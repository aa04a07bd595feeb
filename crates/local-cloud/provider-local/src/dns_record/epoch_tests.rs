#![allow(clippy::unwrap_used)]
use serde_json::{Value, json};

use super::*;

fn read_epoch(zone: &str, change: impl FnOnce(&mut Value)) -> Option<(String, String)> {
    let mut spec = json!({
        "cloudProfile": {},
        "seed": {
            "spec": {
                "settings": {"ownerChecks": {"enabled": true}},
                "dns": {"internal": {"type": "local", "domain": "internal.example.test", "zone": "example.test",
                    "credentialsRef": {}}},
            },
            "status": {"clusterIdentity": "seed-a"},
        },
        "shoot": {"status": {"ownership": {"epoch": 3}, "advertisedAddresses": [
            {"name": "internal", "url": "https://api.web.dev.internal.example.test"},
        ]}},
    });
    change(&mut spec);
    let cluster =
        serde_json::from_value(json!({"metadata": {"name": "shoot--dev--web"}, "spec": spec})).unwrap();
    let epoch = Epoch::from_cluster(&cluster, &absolute(zone).unwrap()).unwrap();
    epoch.map(|epoch| (epoch.name.to_ascii(), epoch.text))
}

#[test]
fn what_is_beside_the_owner_record_is_changed_in_its_epoch() {
    let name = "epoch.owner.web.dev.internal.example.test.".to_owned();
    assert_eq!(
        read_epoch("example.test", |_| {}),
        Some((name.clone(), "3".into()))
    );
    let first = read_epoch("Example.Test.", |spec| {
        spec["shoot"]["status"]["ownership"] = Value::Null;
    });
    assert_eq!(first, Some((name, "1".into())));
    // For users' names, the zone of the record is unknown: a parent zone does not have the record, nor
    // has a delegated subzone.
    for other in ["test", "internal.example.test", "example.com"] {
        assert_eq!(read_epoch(other, |_| {}), None, "{other}");
    }
    let off = |spec: &mut Value| spec["seed"]["spec"]["settings"]["ownerChecks"]["enabled"] = json!(false);
    assert_eq!(read_epoch("example.test", off), None);
}
