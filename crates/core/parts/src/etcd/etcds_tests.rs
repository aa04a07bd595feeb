#![allow(clippy::unwrap_used)]

use serde_json::json;

use super::*;

fn etcd(status: &serde_json::Value) -> Etcd {
    let mut etcd = Etcd::new(MAIN, EtcdSpec::default());
    etcd.metadata.generation = Some(2);
    etcd.status = Some(serde_json::from_value(status.clone()).unwrap());
    etcd
}

#[test]
fn an_etcd_has_a_past_when_its_shoot_has_one_and_keeps_it() {
    let shoot = |last: Option<&str>| -> Shoot {
        let last = last.map(|type_| {
            json!({"type": type_, "state": "Processing", "progress": 1, "description": "",
                "lastUpdateTime": "2026-01-01T00:00:00Z"})
        });
        serde_json::from_value(json!({
            "metadata": {"name": "web"}, "status": {"lastOperation": last},
            "spec": {"kubernetes": {}, "provider": {"type": "local"}, "region": "local"},
        }))
        .unwrap()
    };
    let (plain, mut marked) = (etcd(&json!({})), etcd(&json!({})));
    marked
        .annotations_mut()
        .insert(DRUID_REQUIRE_SNAPSHOT.into(), "true".into());
    for (operation, last, found, expected) in [
        // A new shoot starts empty, for any number of attempts of the creation.
        (Operation::Reconcile, None, None, false),
        (Operation::Reconcile, Some("Create"), None, false),
        (Operation::Reconcile, Some("Create"), Some(&plain), false),
        // A running etcd is not restarted for this annotation alone.
        (Operation::Reconcile, Some("Reconcile"), Some(&plain), false),
        (Operation::Restore, Some("Restore"), None, true),
        (Operation::Restore, Some("Restore"), Some(&marked), true),
        (Operation::Reconcile, Some("Reconcile"), Some(&marked), true),
        (Operation::Migrate, Some("Migrate"), Some(&marked), true),
        // A user deleted the Etcd of a shoot in use.
        (Operation::Reconcile, Some("Reconcile"), None, true),
        // A user deleted the Etcd during the move. The begin of the move has replaced the last operation.
        (Operation::Migrate, Some("Migrate"), None, true),
        (Operation::Migrate, None, None, true),
        (Operation::Migrate, Some("Migrate"), Some(&plain), false),
        // The creation may never have been complete.
        (Operation::Delete, Some("Delete"), None, false),
    ] {
        assert_eq!(
            has_past(operation, &shoot(last), found),
            expected,
            "{operation:?} {last:?} {}",
            found.is_some()
        );
    }
}

/// The former host wrote `status.lastOperation`: a destination that believes the field starts etcd empty.
#[test]
fn a_shoot_with_an_earlier_epoch_has_a_past_under_every_last_operation() {
    for ownership in [
        json!({"epoch": 2}),
        json!({"epoch": 1, "source": {"name": "b", "epoch": 1}}),
    ] {
        for last in [None, Some("Create"), Some("Reconcile")] {
            let operation = last.map(|type_| {
                json!({"type": type_, "state": "Succeeded", "progress": 100, "description": "",
                    "lastUpdateTime": "2026-01-01T00:00:00Z"})
            });
            let shoot: Shoot = serde_json::from_value(json!({
                "metadata": {"name": "web"},
                "status": {"seedName": "a", "ownership": ownership, "lastOperation": operation},
                "spec": {"kubernetes": {}, "provider": {"type": "local"}, "region": "local"},
            }))
            .unwrap();
            for wish in [Operation::Create, Operation::Reconcile] {
                assert!(has_past(wish, &shoot, None), "{wish:?} {last:?} {ownership}");
            }
        }
    }
}

#[test]
fn an_etcd_continues_the_epoch_of_its_own_seed_alone() {
    let continued = |phase: &str, source: &serde_json::Value| {
        let record = json!({"epoch": 3, "phase": phase, "source": source});
        let shoot: Shoot = serde_json::from_value(json!({
            "metadata": {"name": "web"}, "status": {"seedName": "a", "ownership": record},
            "spec": {"kubernetes": {}, "provider": {"type": "local"}, "region": "local"},
        }))
        .unwrap();
        continued_epoch(&shoot, "a")
    };
    for phase in ["Claiming", "Opening", "Held", "Leaving"] {
        let own = json!({"name": "a", "epoch": 1});
        assert_eq!(continued(phase, &own), Some(1), "{phase}");
    }
    for other in [
        json!({"name": "b", "epoch": 2}),
        json!({"name": "a", "epoch": 3}),
        json!(null),
    ] {
        assert_eq!(continued("Claiming", &other), None, "{other}");
    }
}

#[test]
fn the_schedule_is_a_fixed_time_of_day() {
    let schedule = full_snapshot_schedule("shoot--dev--web");
    assert_eq!(full_snapshot_schedule("shoot--dev--web"), schedule);
    let numbers: Vec<u32> = schedule
        .split(' ')
        .take(2)
        .map(|number| number.parse().unwrap())
        .collect();
    assert!(numbers[0] < 60 && numbers[1] < 24, "{schedule}");
}
